/**
 * The local control API, HTTP on a Unix socket that only this user can open, used by the command
 * line.
 *
 *     GET    /status                               state of the gateway
 *     GET    /agents/<namespace>/<name>/token      an Agent's workload token
 *     GET    /agents/<namespace>/<name>/sidecar    configuration of its sidecar, with secrets: for
 *     svc run
 *     GET    /providers/<namespace>/<name>/tools   tools of an MCP server -> ToolsView
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
import { getRequestListener, type HttpBindings } from "@hono/node-server";
import { type Context, Hono } from "hono";
import * as z from "zod";
import type { Logger } from "../platform/log.ts";
import type { ObjectStatus } from "../policy/status.ts";
import { isResourceKind, resourceId, type ResourceKind } from "../resources/kinds.ts";
import { AppliedError, type AppliedFault } from "../sources/applied/applied-error.ts";
import type { Applied, AppliedStore, Change } from "../sources/applied/applied-store.ts";
import { BodyError, readBody } from "./control-body.ts";
import { type ObjectsOptions, type ObjectView, viewObjects } from "./objects.ts";
import { ToolsError, type ToolsView } from "./mcp-tools.ts";
import type { SidecarView } from "./sidecars.ts";
import type { GatewayStatus } from "./status.ts";

export interface ControlOptions {
  readonly status: () => GatewayStatus;
  readonly tokenOf: (namespace: string, name: string) => string;
  /** Returns undefined if no version of the Agent may run. */
  readonly sidecarOf: (namespace: string, name: string) => SidecarView | undefined;
  /** Lists the tools of an MCP server. @throws ToolsError */
  readonly toolsOf: (namespace: string, name: string) => Promise<ToolsView>;
  readonly metrics: () => Promise<string>;
  readonly objects: ObjectsOptions;
  /** undefined in a cluster, where objects are written through the Kubernetes API. */
  readonly store: AppliedStore | undefined;
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

/** The raw request, whose body is read with a limit. */
interface ControlEnv {
  readonly Bindings: HttpBindings;
}

type ControlContext = Context<ControlEnv>;

export function createControl(options: ControlOptions): http.Server {
  const app = new Hono<ControlEnv>();
  app.get("/status", (context) => context.json(options.status()));
  app.get("/metrics", async (context) =>
    context.body(await options.metrics(), 200, { "content-type": "text/plain; version=0.0.4" }),
  );
  app.get("/agents/:namespace/:name/:what{token|sidecar}", (context) => agent(options, context));
  app.get("/providers/:namespace/:name/tools", async (context) => {
    const { namespace, name } = context.req.param();
    return context.json(await options.toolsOf(namespace, name));
  });
  app.post("/objects", (context) => apply(options, context));
  app.get("/objects/:kind", (context) => list(options, context));
  app.on(["GET", "PATCH", "DELETE"], "/objects/:kind/:namespace/:name", (context) =>
    one(options, context),
  );
  const paths = [
    "/status",
    "/metrics",
    "/agents/:namespace/:name/:what{token|sidecar}",
    "/providers/:namespace/:name/tools",
  ];
  for (const path of [...paths, "/objects", "/objects/:kind", "/objects/:kind/:namespace/:name"]) {
    app.all(path, () => refuse(405, "method not allowed"));
  }
  app.notFound(() => refuse(404, "not found"));
  app.onError((error) => {
    if (error instanceof AppliedError)
      return refuse(FAULT_STATUS[error.fault], error.message, error.problems);
    if (error instanceof ToolsError) return refuse(error.status, error.message);
    if (error instanceof BodyError) return refuse(error.status, error.message);
    const defect = error.stack ?? error.message;
    options.log.error({ error: defect }, "defect: a request of the control API failed");
    return refuse(500, "the gateway failed; see its log for the reason");
  });
  const listener = getRequestListener(app.fetch, { overrideGlobalObjects: false });
  return http.createServer((request, response) => void listener(request, response));
}

function agent(options: ControlOptions, context: ControlContext): Response {
  const { namespace = "", name = "", what } = context.req.param();
  const known = options
    .status()
    .objects.find(
      (object) => object.kind === "Agent" && object.namespace === namespace && object.name === name,
    );
  if (known === undefined) return refuse(404, `no Agent ${name} in namespace ${namespace}`);
  if (what === "token") return context.json({ token: options.tokenOf(namespace, name) });
  const sidecar = options.sidecarOf(namespace, name);
  if (sidecar !== undefined) return context.json(sidecar);
  const { reason, message } = known;
  return refuse(
    409,
    `Agent ${name} in namespace ${namespace} is not in use: ${reason}: ${message}`,
  );
}

async function list(options: ControlOptions, context: ControlContext): Promise<Response> {
  const { kind = "" } = context.req.param();
  if (!isResourceKind(kind)) return refuse(404, `there is no kind ${kind}`);
  const namespace = context.req.query("namespace");
  const items = await viewObjects(
    options.objects,
    (status) => status.kind === kind && (namespace === undefined || status.namespace === namespace),
  );
  return context.json({ items });
}

interface Ref {
  readonly kind: ResourceKind;
  readonly namespace: string;
  readonly name: string;
}

async function one(options: ControlOptions, context: ControlContext): Promise<Response> {
  const { kind = "", namespace = "", name = "" } = context.req.param();
  if (!isResourceKind(kind)) return refuse(404, `there is no kind ${kind}`);
  const ref: Ref = { kind, namespace, name };
  switch (context.req.method) {
    case "PATCH": {
      const patch = await readBody(context.env.incoming);
      if (typeof patch !== "object" || patch === null || Array.isArray(patch))
        return refuse(400, "a patch is a JSON object");
      const [result] = await results(options, [await storeOf(options).patch(ref, patch)]);
      return context.json(result);
    }
    case "DELETE":
      await storeOf(options).delete(ref);
      return context.json({});
    default: {
      const [object] = await viewObjects(options.objects, isOneOf([ref]));
      return object === undefined
        ? refuse(404, `there is no ${kind} ${namespace}/${name}`)
        : context.json(object);
    }
  }
}

async function apply(options: ControlOptions, context: ControlContext): Promise<Response> {
  const body = applyBody.safeParse(await readBody(context.env.incoming));
  if (!body.success) return refuse(400, "the body must be {manifests: [{source, text}]}");
  const create = context.req.query("create") === "true";
  const applied = await storeOf(options).apply(body.data.manifests, { create });
  return context.json({ results: await results(options, applied) });
}

/** @throws BodyError if this gateway's resources are not its own */
function storeOf({ store }: ControlOptions): AppliedStore {
  if (store !== undefined) return store;
  throw new BodyError(405, "this gateway runs in a cluster: write objects with kubectl");
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

function refuse(status: number, error: string, problems?: readonly string[]): Response {
  const body: ControlFailure = { error, ...(problems === undefined ? {} : { problems }) };
  return Response.json(body, { status });
}
