/**
 * HTTP endpoints of the gateway itself, behind Envoy: models, metrics, readiness, and errors for
 * other paths.
 */
import { identify } from "../access/identity.ts";
import { EXTERNAL_PREFIX, splitAudience } from "../access/audience.ts";
import http from "node:http";
import type { ClientAddress } from "../access/client-address.ts";
import { InternalHeader } from "../envoy/config/names.ts";
import type { HeaderMap } from "../envoy/ext-proc/messages.ts";
import type { AuditTrail } from "../llm/audit-trail.ts";
import { dialects } from "../llm/dialects/registry.ts";
import { publicError, type PublicError } from "../access/errors.ts";
import { dialectOfPath, parseRoute } from "../llm/routes.ts";
import { listDialect, listModels } from "../llm/models-list.ts";
import type { Clock } from "../platform/clock.ts";
import type { PolicySnapshot } from "../policy/snapshot.ts";

export interface ApiOptions {
  readonly policy: () => PolicySnapshot;
  readonly clientAddress: ClientAddress;
  readonly clock: Clock;
  readonly audit: AuditTrail;
  readonly metrics: () => Promise<string>;
  /** Returns the reason why the gateway is not ready; undefined if it is. */
  readonly notReady: () => string | undefined;
}

export function createApi(options: ApiOptions): http.Server {
  const server = http.createServer((request, response) => {
    request.resume();
    answer(options, request, response).catch(() => response.destroy());
  });
  server.keepAliveTimeout = 120_000;
  return server;
}

async function answer(
  options: ApiOptions,
  request: http.IncomingMessage,
  response: http.ServerResponse,
): Promise<void> {
  const url = request.url ?? "/";
  const mark = url.indexOf("?");
  const { audience, pathname: path } = splitAudience(mark < 0 ? url : url.slice(0, mark));
  const internal = audience === "internal";
  const query = mark < 0 ? "" : url.slice(mark + 1);
  const get = request.method === "GET" || request.method === "HEAD";
  const fail = (error: PublicError): void => {
    send(
      response,
      error.status,
      "application/json",
      dialects[dialectOfPath(path)].renderError(error),
    );
  };

  if (internal && path === "/metrics" && get)
    return send(response, 200, "text/plain; version=0.0.4", await options.metrics());
  if (internal && path === "/readyz" && get) {
    const reason = options.notReady();
    return send(response, reason === undefined ? 200 : 503, "text/plain", `${reason ?? "ok"}\n`);
  }
  const models = get && parseRoute(path) === undefined ? modelsPath(path) : undefined;
  if (models !== undefined) {
    const headers = headerMap(request);
    const dialect = listDialect(path, headers);
    const failList = (error: PublicError): void =>
      send(response, error.status, "application/json", dialects[dialect].renderError(error));
    const address = options.clientAddress(
      headers.get(InternalHeader.peer),
      headers.get("x-forwarded-for"),
    );
    const identity = identify(options.policy(), {
      audience,
      headers,
      query,
      address,
      now: options.clock.now(),
    });
    if (identity.kind === "refused") {
      const { error, policy } = identity;
      const origin = { policy, address, model: undefined, path };
      options.audit.refused({ error, origin });
      return failList(error);
    }
    const found = listModels(identity.policy, dialect, models);
    return found === undefined
      ? failList(
          publicError(
            "model_not_found",
            `There is no such model here. GET ${audience === "external" ? EXTERNAL_PREFIX : ""}/v1/models lists yours.`,
          ),
        )
      : send(response, 200, "application/json", JSON.stringify(found));
  }
  if (
    parseRoute(path) !== undefined ||
    path === "/v1/models" ||
    (internal && ["/metrics", "/readyz", "/healthz"].includes(path))
  ) {
    return fail(publicError("method_not_allowed", `${request.method ?? ""} is not allowed here.`));
  }
  fail(publicError("not_found", "The gateway has no such path."));
}

/** Returns `""` for the list, a name for one model, undefined for other paths. */
function modelsPath(path: string): string | undefined {
  if (path === "/v1/models" || path === "/v1beta/models") return "";
  const match = /^\/(?:v1|v1beta)\/models\/(.+)$/.exec(path);
  if (match === null) return undefined;
  try {
    return decodeURIComponent(match[1] as string);
  } catch {
    return undefined;
  }
}

function headerMap(request: http.IncomingMessage): HeaderMap {
  return new Map(
    Object.entries(request.headers).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.join(", ") : (value ?? ""),
    ]),
  );
}

function send(response: http.ServerResponse, status: number, type: string, body: string): void {
  response.writeHead(status, { "content-type": type }).end(body);
}
