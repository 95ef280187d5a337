/** Answers of an MCP server in which lists are filtered. */
import { JsonError } from "../../platform/json/scan.ts";
import type { McpPolicy } from "./item-policy.ts";
import { renderError, type RequestId, RpcCode } from "./json-rpc.ts";
import { filterLists } from "./list-filter.ts";

/** Maximum size in bytes of an event in which lists are looked for. */
export const MAX_LIST_EVENT_BYTES = 16 * 1_048_576;

const UNREADABLE = {
  code: RpcCode.internalError,
  message: "The MCP server's message cannot be read with certainty, so it is not forwarded.",
  data: { code: "upstream_invalid", status: 502 },
};

/**
 * Filters the lists of a message, or of each message of a batch. A message that cannot be read with
 * certainty is replaced by an error.
 *
 * @param id of the request that is answered, if it is known
 * @returns undefined to leave the message as it is
 */
export function filteredMessage(
  json: Buffer,
  policy: McpPolicy,
  id: RequestId | undefined,
): Buffer | undefined {
  try {
    return filterLists(json, policy);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    return Buffer.from(renderError(id, UNREADABLE));
  }
}

/** Returns the media type of a body in lower case; empty if there is none. */
export function mediaType(headers: ReadonlyMap<string, string>): string {
  return (headers.get("content-type") ?? "").split(";", 1)[0]?.trim().toLowerCase() ?? "";
}

/** Returns whether lists in the body of an answer can be found. */
export function isReadable(headers: ReadonlyMap<string, string>): boolean {
  const encoding = headers.get("content-encoding");
  if (encoding !== undefined && encoding.toLowerCase() !== "identity") return false;
  const type = mediaType(headers);
  if (type === "") return headers.get("content-length") === "0" || headers.get(":status") === "202";
  return type === "application/json" || type === "text/event-stream";
}
