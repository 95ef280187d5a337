/**
 * Resolves requests to the library. Its whole API:
 *
 *     GET    /v1/status
 *     GET    /v1/shelves/{shelf}/books              POST /v1/shelves/{shelf}/books
 *     GET    /v1/shelves/{shelf}/books/{number}     DELETE /v1/shelves/{shelf}/books/{number}
 */
import type { ActionResolution, ServiceRequest } from "../contract.ts";

/** The path as on the wire. Any other path is not an operation: nothing is decoded or corrected. */
const BOOKS = /^\/v1\/shelves\/([a-z0-9-]{1,40})\/books(\/\d{1,10})?$/;

export function resolve({ host, method, path }: ServiceRequest): ActionResolution {
  if (host !== "api.library.example")
    return { kind: "unresolved", reason: "This host does not belong to the library" };
  if (method === "GET" && path === "/v1/status") {
    return {
      kind: "resolved",
      actions: [{ action: "status:read", resources: [{ kind: "none" }] }],
    };
  }
  const [, shelf, book] = BOOKS.exec(path) ?? [];
  const verb = verbOf(method, book !== undefined);
  if (shelf === undefined || verb === undefined) {
    return {
      kind: "unresolved",
      reason: "This is not an operation of the library",
      hint: "Books are at /v1/shelves/<shelf>/books",
    };
  }
  return {
    kind: "resolved",
    actions: [
      { action: `books:${verb}`, resources: [{ kind: "scoped", key: "projects", value: shelf }] },
    ],
  };
}

function verbOf(method: string, ofOne: boolean): string | undefined {
  if (method === "GET") return "read";
  return method === (ofOne ? "DELETE" : "POST") ? "write" : undefined;
}
