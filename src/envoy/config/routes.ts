/** Routes: the paths for the LLM processor, and those that Node answers itself. */
import type {
  Any,
  HeaderMatcher,
  Route,
  RouteConfiguration,
  RouteMatch,
} from "../../gen/messages.ts";
import { duration } from "./duration.ts";
import { Extension, extension, typed } from "./extensions.ts";
import { Cluster, InternalHeader, MAX_ATTEMPTS } from "./names.ts";

/** Headers that upstreams must not see, and hop-by-hop leftovers. */
const NOT_FOR_UPSTREAMS: readonly string[] = [
  "x-forwarded-for",
  "x-forwarded-proto",
  "x-forwarded-host",
  "x-forwarded-port",
  "x-forwarded-client-cert",
  "x-real-ip",
  "forwarded",
  "via",
  "x-envoy-external-address",
  "x-envoy-internal",
  "x-envoy-expected-rq-timeout-ms",
  "cookie",
  // The caller's own account at a vendor has no meaning with our key.
  "openai-organization",
  "openai-project",
  "x-goog-user-project",
  // Answers are parsed: they must be uncompressed.
  "accept-encoding",
  "content-encoding",
  InternalHeader.cluster,
  InternalHeader.upstream,
  InternalHeader.peer,
];

/** Headers of an upstream's answer that callers must not see. */
const NOT_FOR_CLIENTS: readonly string[] = [
  "set-cookie",
  "alt-svc",
  "openai-organization",
  "openai-project",
  "anthropic-organization-id",
  "x-envoy-upstream-service-time",
];

/** Paths of the LLM processor, all with POST. A test keeps them equal to `src/llm/routes.ts`. */
export const LLM_PATHS: readonly string[] = [
  "/v1/chat/completions",
  "/v1/messages",
  "/v1/messages/count_tokens",
  "/v1/embeddings",
  "/v1/responses",
];

/** The same paths below `/ext`; Anthropic's clients add another `/v1`. */
export const EXTERNAL_LLM_PATHS: readonly string[] = LLM_PATHS.flatMap((path) => [
  `/ext${path}`,
  `/ext/v1${path}`,
]);

/** Gemini's paths, whose model may contain slashes. Google's SDK also uses /v1. */
export const GEMINI_PATHS =
  "/v1(beta)?/models/.+:(generateContent|streamGenerateContent|countTokens)";

/** Prefixes that the external listener serves; it answers 404 for everything else. */
const EXTERNAL_PREFIXES: readonly string[] = ["/ext/", "/webhooks/", "/agents/", "/sessions/"];

const BY_POST: readonly HeaderMatcher[] = [{ name: ":method", stringMatch: { exact: "POST" } }];

const NO_PROCESSOR: Readonly<Record<string, Any>> = {
  [Extension.extProc.name]: typed("envoy.extensions.filters.http.ext_proc.v3.ExtProcPerRoute", {
    disabled: true,
  }),
};

const NOTHING_HERE = JSON.stringify({
  type: "error",
  error: {
    type: "not_found_error",
    code: "not_found",
    message: "The external gateway has no such path.",
    param: null,
  },
});

const BASE_INTERVAL_MS = 1;

/** Longer than any sensible wait for the first bytes of all attempts together. */
const ANSWER_IDLE = "3600s";

function llmRoute(
  match: RouteMatch,
  idleTimeout: string,
  headers: readonly HeaderMatcher[] = BY_POST,
): Route {
  return {
    name: "llm",
    match: { ...match, headers },
    requestHeadersToRemove: NOT_FOR_UPSTREAMS,
    route: {
      // Set by the processor: without this header the request has no upstream route.
      clusterHeader: InternalHeader.cluster,
      clusterNotFoundResponseCode: "SERVICE_UNAVAILABLE",
      // No limit on the total time, because answers may stream without limit. Attempts have limits
      // by header.
      timeout: "0s",
      idleTimeout,
      retryPolicy: {
        retryOn: "5xx,reset,connect-failure,refused-stream,retriable-status-codes",
        retriableStatusCodes: [429],
        // The processor sets the number (x-envoy-max-retries) and paces the retries, so Envoy need
        // not wait.
        numRetries: MAX_ATTEMPTS - 1,
        retryBackOff: {
          baseInterval: duration(BASE_INTERVAL_MS),
          maxInterval: duration(BASE_INTERVAL_MS),
        },
        retryPriority: extension(Extension.previousPriorities, { updateFrequency: 1 }),
      },
    },
  };
}

/**
 * A forwarded call, whose path is already the upstream's. The listener removes a client's own
 * header before route selection, so only the processor can select this route.
 */
const ON_ITS_WAY: Route = llmRoute({ prefix: "/" }, ANSWER_IDLE, [
  { name: InternalHeader.cluster, presentMatch: true },
]);

/** @param uploadIdle a request whose body makes no progress for this time ends with 408 */
function externalLlmRoutes(uploadIdle: string): Route[] {
  return [
    ...EXTERNAL_LLM_PATHS.map((path) => llmRoute({ path }, uploadIdle)),
    llmRoute({ safeRegex: { regex: `/ext${GEMINI_PATHS}` } }, uploadIdle),
  ];
}

function apiRoute(prefix: string): Route {
  return {
    name: "api",
    match: { prefix },
    route: { cluster: Cluster.api, timeout: "30s" },
    typedPerFilterConfig: NO_PROCESSOR,
  };
}

/** Routes of the listener for an ingress, without the internal API. */
export function externalRoutes(name: string, uploadIdle: string): RouteConfiguration {
  return {
    name,
    responseHeadersToRemove: NOT_FOR_CLIENTS,
    virtualHosts: [
      {
        name,
        domains: ["*"],
        routes: [
          ON_ITS_WAY,
          ...externalLlmRoutes(uploadIdle),
          ...EXTERNAL_PREFIXES.map(apiRoute),
          {
            name: "nothing",
            match: { prefix: "/" },
            directResponse: { status: 404, body: { inlineString: NOTHING_HERE } },
            responseHeadersToAdd: [
              {
                header: { key: "content-type", value: "application/json" },
                appendAction: "OVERWRITE_IF_EXISTS_OR_ADD",
              },
            ],
            typedPerFilterConfig: NO_PROCESSOR,
          },
        ],
      },
    ],
  };
}

/** Routes of the internal listener, which serves everything. */
export function gatewayRoutes(name: string, uploadIdle: string): RouteConfiguration {
  return {
    name,
    responseHeadersToRemove: NOT_FOR_CLIENTS,
    virtualHosts: [
      {
        name,
        domains: ["*"],
        routes: [
          ON_ITS_WAY,
          ...LLM_PATHS.map((path) => llmRoute({ path }, uploadIdle)),
          llmRoute({ safeRegex: { regex: GEMINI_PATHS } }, uploadIdle),
          ...externalLlmRoutes(uploadIdle),
          {
            name: "healthz",
            match: { path: "/healthz" },
            directResponse: { status: 200, body: { inlineString: "ok\n" } },
            typedPerFilterConfig: NO_PROCESSOR,
          },
          apiRoute("/"),
        ],
      },
    ],
  };
}

/** Routes after the relay: to the provider itself. */
export function relayRoutes(name: string): RouteConfiguration {
  return {
    name,
    virtualHosts: [
      {
        name,
        domains: ["*"],
        routes: [
          {
            name: "relayed",
            match: { prefix: "/" },
            requestHeadersToRemove: [InternalHeader.relay],
            route: {
              clusterHeader: InternalHeader.relay,
              clusterNotFoundResponseCode: "SERVICE_UNAVAILABLE",
              timeout: "0s",
            },
          },
        ],
      },
    ],
  };
}

/** Routes of the attempts after the first. */
export function attemptRoutes(name: string): RouteConfiguration {
  return {
    name,
    requestHeadersToRemove: NOT_FOR_UPSTREAMS,
    virtualHosts: [
      {
        name,
        domains: ["*"],
        routes: [
          {
            name: "attempt",
            match: { prefix: "/" },
            route: {
              clusterHeader: InternalHeader.upstream,
              clusterNotFoundResponseCode: "SERVICE_UNAVAILABLE",
              timeout: "0s",
            },
          },
        ],
      },
    ],
  };
}
