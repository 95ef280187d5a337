/**
 * HTTP endpoints of the gateway itself, behind Envoy: models, metrics, readiness, and errors for
 * other paths.
 */
import { identify } from "../access/identity.ts";
import { EXTERNAL_PREFIX, splitAudience } from "../access/audience.ts";
import http from "node:http";
import { getRequestListener, type HttpBindings } from "@hono/node-server";
import { type Context, Hono } from "hono";
import type { ClientAddress } from "../access/client-address.ts";
import { InternalHeader } from "../envoy/config/names.ts";
import type { HeaderMap } from "../envoy/ext-proc/messages.ts";
import type { AuditTrail } from "../llm/settlement/audit-trail.ts";
import { dialects } from "../llm/dialects/registry.ts";
import { publicError, type PublicError } from "../access/errors.ts";
import { CALL_ID, Refusal, refusalHeaders } from "../access/refusal.ts";
import { dialectOfPath, parseRoute } from "../llm/request/routes.ts";
import { listDialect, listModels } from "../llm/request/models-list.ts";
import type { Clock } from "../platform/clock.ts";
import type { DialectName, PolicySnapshot } from "../policy/snapshot.ts";

export interface ApiOptions {
  readonly policy: () => PolicySnapshot;
  readonly clientAddress: ClientAddress;
  readonly clock: Clock;
  readonly audit: AuditTrail;
  readonly metrics: () => Promise<string>;
  /** Returns the reason why the gateway is not ready; undefined if it is. */
  readonly notReady: () => string | undefined;
  readonly onDefect: (error: unknown) => void;
  readonly newCallId: () => string;
}

export function createApi(options: ApiOptions): http.Server {
  // Paths are compared as Envoy compared them: raw.
  const app = new Hono<{ Bindings: HttpBindings }>({
    getPath: (_request, routed) => rawTarget(routed?.env).path,
  });
  app.get("/metrics", async (context) =>
    context.body(await options.metrics(), 200, { "content-type": "text/plain; version=0.0.4" }),
  );
  app.get("/readyz", (context) => {
    const reason = options.notReady();
    return context.text(`${reason ?? "ok"}\n`, reason === undefined ? 200 : 503);
  });
  app.get("*", async (context, next) => {
    const models = modelsPath(splitAudience(context.req.path).pathname);
    return models === undefined ? next() : listed(options, context, models);
  });
  app.all("*", (context) => {
    const { audience, pathname } = splitAudience(context.req.path);
    const isKnown =
      parseRoute(pathname) !== undefined ||
      pathname === "/v1/models" ||
      (audience === "internal" && ["/metrics", "/readyz", "/healthz"].includes(pathname));
    const error = isKnown
      ? publicError("method_not_allowed", `${context.req.method} is not allowed here.`)
      : publicError("not_found", "The gateway has no such path.");
    return failure(error, dialectOfPath(pathname), options.newCallId());
  });
  app.onError((error) => {
    options.onDefect(error);
    return new Response("The gateway failed; see its log for the reason.\n", { status: 500 });
  });
  const listener = getRequestListener(app.fetch, { overrideGlobalObjects: false });
  const server = http.createServer((request, response) => void listener(request, response));
  server.keepAliveTimeout = 120_000;
  return server;
}

type ApiContext = Context<{ Bindings: HttpBindings }>;

/** Returns the path and the query as on the wire. */
function rawTarget(env: HttpBindings | undefined): {
  readonly path: string;
  readonly query: string;
} {
  const url = env?.incoming.url ?? "/";
  const mark = url.indexOf("?");
  return mark < 0
    ? { path: url, query: "" }
    : { path: url.slice(0, mark), query: url.slice(mark + 1) };
}

/** Answers with the models that the caller may use. */
function listed(options: ApiOptions, context: ApiContext, models: string): Response {
  const { audience, pathname } = splitAudience(context.req.path);
  const headers: HeaderMap = new Map(Object.entries(context.req.header()));
  const dialect = listDialect(pathname, headers);
  const address = options.clientAddress(
    headers.get(InternalHeader.peer),
    headers.get("x-forwarded-for"),
  );
  const identity = identify(options.policy(), {
    audience,
    headers,
    query: rawTarget(context.env).query,
    address,
    now: options.clock.now(),
  });
  if (identity.kind === "refused") {
    const { error, policy } = identity;
    const origin = { policy, address, model: undefined, path: pathname };
    options.audit.refused({ error, origin });
    return failure(error, dialect, options.newCallId());
  }
  const found = listModels(identity.policy, dialect, models);
  if (found !== undefined) {
    return Response.json(found, { headers: { [CALL_ID]: options.newCallId() } });
  }
  const prefix = audience === "external" ? EXTERNAL_PREFIX : "";
  const message = `There is no such model here. GET ${prefix}/v1/models lists yours.`;
  return failure(publicError("model_not_found", message), dialect, options.newCallId());
}

function failure(error: PublicError, dialect: DialectName, callId: string): Response {
  return new Response(dialects[dialect].renderError(error), {
    status: error.status,
    headers: refusalHeaders(new Refusal(error), callId).map(([name, value]) => [name, value]),
  });
}

/** Returns `""` for the list, a name for one model, undefined for other paths. */
function modelsPath(path: string): string | undefined {
  if (parseRoute(path) !== undefined) return undefined;
  if (path === "/v1/models" || path === "/v1beta/models") return "";
  const match = /^\/(?:v1|v1beta)\/models\/(.+)$/.exec(path);
  if (match === null) return undefined;
  try {
    return decodeURIComponent(match[1] as string);
  } catch {
    return undefined;
  }
}
