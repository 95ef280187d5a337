/**
 * The local control API, HTTP on a Unix socket that only this user can open, used by the command
 * line.
 *
 *     GET    /status                               state of the gateway
 *     GET    /agents/<namespace>/<name>/token      an Agent's workload token
 *     GET    /agents/<namespace>/<name>/sidecar    configuration of its sidecar, with secrets: for
 *     svc run
 *     GET    /metrics                              Prometheus' text
 *     GET    /objects/<Kind>[?namespace=<ns>]      {items: ObjectView[]}
 *     GET    /objects/<Kind>/<namespace>/<name>    ObjectView
 *     POST   /objects[?create=true]                {manifests: [{source, text}]} -> {results:
 *     ApplyResult[]}
 *     PATCH  /objects/<Kind>/<namespace>/<name>    JSON merge patch (RFC 7396) -> ApplyResult
 *     DELETE /objects/<Kind>/<namespace>/<name>    {}
 *
 * Refusals answer {error, problems?}: one line, and the list of problems if there are several.
 */
import http from "node:http";
import { z } from "zod";
import type { Logger } from "../platform/log.ts";
import type { ObjectStatus } from "../policy/status.ts";
import { isResourceKind, resourceId, type ResourceKind } from "../resources/kinds.ts";
import { AppliedError, type AppliedFault } from "../sources/applied/applied-error.ts";
import type { Applied, AppliedStore, Change } from "../sources/applied/applied-store.ts";
import { BodyError, readBody } from "./control-body.ts";
import { type ObjectsOptions, type ObjectView, viewObjects } from "./objects.ts";
import type { SidecarView } from "./sidecars.ts";
import type { GatewayStatus } from "./status.ts";

export interface ControlOptions {
  readonly status: () => GatewayStatus;
  readonly tokenOf: (namespace: string, name: string) => string;
  readonly sidecarOf: (namespace: string, name: string) => SidecarView;
  readonly metrics: () => Promise<string>;
  readonly objects: ObjectsOptions;
  readonly store: AppliedStore;
  readonly log: Pick<Logger, "error">;
}

export interface ApplyResult {
  readonly kind: ResourceKind;
  readonly namespace: string;
  readonly name: string;
  readonly change: Change;
  /** The object in force; undefined if another change has deleted it. */
  readonly object: ObjectView | undefined;
}

export interface ControlFailure {
  readonly error: string;
  readonly problems?: readonly string[];
}

const FAULT_STATUS: Readonly<Record<AppliedFault, number>> = {
  invalid: 422,
  "not-found": 404,
  exists: 409,
  conflict: 409,
  unwritable: 507,
};

const applyBody = z.strictObject({
  manifests: z
    .array(z.strictObject({ source: z.string().max(4096), text: z.string() }))
    .max(10_000),
});

interface Reply {
  readonly status: number;
  readonly body: unknown;
}

export function createControl(options: ControlOptions): http.Server {
  return http.createServer((request, response) => {
    serve(options, request, response).catch(() => response.destroy());
  });
}

async function serve(
  options: ControlOptions,
  request: http.IncomingMessage,
  response: http.ServerResponse,
): Promise<void> {
  const { status, body } = await answer(options, request);
  const text = typeof body === "string";
  response
    .writeHead(status, { "content-type": text ? "text/plain; version=0.0.4" : "application/json" })
    .end(text ? body : JSON.stringify(body));
  request.resume();
}

async function answer(options: ControlOptions, request: http.IncomingMessage): Promise<Reply> {
  try {
    return await route(options, request);
  } catch (error) {
    if (error instanceof AppliedError)
      return refuse(FAULT_STATUS[error.fault], error.message, error.problems);
    if (error instanceof BodyError) return refuse(error.status, error.message);
    options.log.error(
      { error: error instanceof Error ? error.stack : String(error) },
      "defect: a request of the control API failed",
    );
    return refuse(500, "the gateway failed; see its log for the reason");
  }
}

async function route(options: ControlOptions, request: http.IncomingMessage): Promise<Reply> {
  const url = request.url ?? "/";
  const mark = url.indexOf("?");
  const query = new URLSearchParams(mark < 0 ? "" : url.slice(mark + 1));
  const parts = pathParts(mark < 0 ? url : url.slice(0, mark));
  if (parts === undefined) return refuse(404, "not found");
  const [first, second, third, fourth] = parts;
  const { method } = request;

  if (first === "objects" && parts.length === 1)
    return method === "POST" ? apply(options, request, query) : notAllowed();
  if (first === "objects" && second !== undefined && parts.length <= 4 && parts.length !== 3) {
    if (!isResourceKind(second)) return refuse(404, `there is no kind ${second}`);
    if (third === undefined || fourth === undefined) {
      if (method !== "GET") return notAllowed();
      const namespace = query.get("namespace");
      const items = await viewObjects(
        options.objects,
        (status) =>
          status.kind === second && (namespace === null || status.namespace === namespace),
      );
      return { status: 200, body: { items } };
    }
    return one(options, request, { kind: second, namespace: third, name: fourth });
  }
  if (method !== "GET") return notAllowed();
  if (first === "status" && parts.length === 1) return { status: 200, body: options.status() };
  if (first === "metrics" && parts.length === 1)
    return { status: 200, body: await options.metrics() };
  if (
    first === "agents" &&
    second !== undefined &&
    third !== undefined &&
    (fourth === "token" || fourth === "sidecar") &&
    parts.length === 4
  ) {
    const known = options
      .status()
      .objects.some(
        (object) => object.kind === "Agent" && object.namespace === second && object.name === third,
      );
    if (!known) return refuse(404, `no Agent ${third} in namespace ${second}`);
    return {
      status: 200,
      body:
        fourth === "token"
          ? { token: options.tokenOf(second, third) }
          : options.sidecarOf(second, third),
    };
  }
  return refuse(404, "not found");
}

interface Ref {
  readonly kind: ResourceKind;
  readonly namespace: string;
  readonly name: string;
}

async function one(
  options: ControlOptions,
  request: http.IncomingMessage,
  ref: Ref,
): Promise<Reply> {
  switch (request.method) {
    case "GET": {
      const [object] = await viewObjects(options.objects, isOneOf([ref]));
      return object === undefined
        ? refuse(404, `there is no ${ref.kind} ${ref.namespace}/${ref.name}`)
        : { status: 200, body: object };
    }
    case "PATCH": {
      const patch = await readBody(request);
      if (typeof patch !== "object" || patch === null || Array.isArray(patch))
        return refuse(400, "a patch is a JSON object");
      const [result] = await results(options, [await options.store.patch(ref, patch)]);
      return { status: 200, body: result };
    }
    case "DELETE":
      await options.store.delete(ref);
      return { status: 200, body: {} };
    default:
      return notAllowed();
  }
}

async function apply(
  options: ControlOptions,
  request: http.IncomingMessage,
  query: URLSearchParams,
): Promise<Reply> {
  const body = applyBody.safeParse(await readBody(request));
  if (!body.success) return refuse(400, "the body must be {manifests: [{source, text}]}");
  const applied = await options.store.apply(body.data.manifests, {
    create: query.get("create") === "true",
  });
  return { status: 200, body: { results: await results(options, applied) } };
}

async function results(
  options: ControlOptions,
  applied: readonly Applied[],
): Promise<ApplyResult[]> {
  const views = await viewObjects(options.objects, isOneOf(applied));
  const byId = new Map(
    views.map((object) => [resourceId({ kind: object.kind, ...object.metadata }), object]),
  );
  return applied.map((one) => ({ ...one, object: byId.get(resourceId(one)) }));
}

function isOneOf(refs: readonly Ref[]): (status: ObjectStatus) => boolean {
  const ids = new Set(refs.map(resourceId));
  return (status) => ids.has(resourceId(status));
}

function refuse(status: number, error: string, problems?: readonly string[]): Reply {
  const body: ControlFailure = { error, ...(problems === undefined ? {} : { problems }) };
  return { status, body };
}

function notAllowed(): Reply {
  return refuse(405, "method not allowed");
}

/** Returns the decoded parts of a path; undefined if one cannot be decoded. */
function pathParts(path: string): string[] | undefined {
  try {
    return path.slice(1).split("/").map(decodeURIComponent);
  } catch {
    return undefined;
  }
}
