/** Routes: the paths of the surfaces, and the routes of the internal listeners. */
import type {
  Any,
  HeaderMatcher,
  Route,
  RouteAction,
  RouteConfiguration,
  RouteMatch,
} from "../../gen/messages.ts";
import { duration } from "./duration.ts";
import { Extension, extension, typed } from "./extensions.ts";
import { InternalHeader, localCluster, MAX_ATTEMPTS } from "./names.ts";
import {
  CallerListener,
  type CallerListenerName,
  type ProcessorEndpoint,
  processorsOf,
  type Surface,
  type SurfacePath,
} from "./surface.ts";

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
  InternalHeader.server,
  InternalHeader.credential,
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

/** A timeout that is not in force. */
const NO_LIMIT = "0s";

/** Longer than any sensible wait for the first bytes of all attempts together. */
const ANSWER_IDLE = "3600s";

/** Name of a processor's HTTP filter. */
export function filterName({ name }: ProcessorEndpoint): string {
  return `${Extension.extProc.name}.${name}`;
}

/**
 * Builds the part of a route that enables the filter of its processor and disables the others.
 * @param processor undefined for none
 * @param all processors of the listener
 */
function processorOfRoute(
  processor: ProcessorEndpoint | undefined,
  all: readonly ProcessorEndpoint[],
): Readonly<Record<string, Any>> | undefined {
  const changed = all.filter((one) => (one === processor) !== one.seesRequestsWithoutRoute);
  if (changed.length === 0) return undefined;
  return Object.fromEntries(
    changed.map((one) => [
      filterName(one),
      typed(
        "envoy.extensions.filters.http.ext_proc.v3.ExtProcPerRoute",
        one === processor ? { overrides: {} } : { disabled: true },
      ),
    ]),
  );
}

/** Routes to the provider's cluster that the processor has chosen, with retries. */
const TO_PROVIDER: RouteAction = {
  // Set by the processor: without this header the request has no upstream route.
  clusterHeader: InternalHeader.cluster,
  clusterNotFoundResponseCode: "SERVICE_UNAVAILABLE",
  retryPolicy: {
    retryOn: "5xx,reset,connect-failure,refused-stream,retriable-status-codes",
    retriableStatusCodes: [429],
    // The processor sets the number (x-envoy-max-retries) and paces the retries, so Envoy need not
    // wait.
    numRetries: MAX_ATTEMPTS - 1,
    retryBackOff: {
      baseInterval: duration(BASE_INTERVAL_MS),
      maxInterval: duration(BASE_INTERVAL_MS),
    },
    retryPriority: extension(Extension.previousPriorities, { updateFrequency: 1 }),
  },
};

/**
 * A forwarded call, whose path is already the upstream's. The listener removes a client's own
 * header before route selection, so only a processor can select this route.
 */
const ON_ITS_WAY: Route = {
  name: "forwarded",
  match: { prefix: "/", headers: [{ name: InternalHeader.cluster, presentMatch: true }] },
  requestHeadersToRemove: NOT_FOR_UPSTREAMS,
  route: { ...TO_PROVIDER, timeout: NO_LIMIT, idleTimeout: ANSWER_IDLE },
};

/**
 * Routes to the MCP server's cluster that the processor has chosen. A call of a tool must not be
 * repeated: only a request that has not been sent is sent again.
 */
const TO_SERVER: RouteAction = {
  clusterHeader: InternalHeader.server,
  clusterNotFoundResponseCode: "SERVICE_UNAVAILABLE",
  retryPolicy: { retryOn: "connect-failure,refused-stream,reset-before-request", numRetries: 1 },
};

/**
 * A forwarded request to an MCP server: like {@link ON_ITS_WAY}. Streams may be silent for hours.
 */
const TO_SERVER_ON_ITS_WAY: Route = {
  name: "forwarded-mcp",
  match: { prefix: "/", headers: [{ name: InternalHeader.server, presentMatch: true }] },
  requestHeadersToRemove: [...NOT_FOR_UPSTREAMS, "origin", "referer"],
  route: { ...TO_SERVER, timeout: NO_LIMIT, idleTimeout: NO_LIMIT },
};

/** Builds the routes of a surface, one for each path. */
function surfaceRoutes(surface: Surface, all: readonly ProcessorEndpoint[]): Route[] {
  const { name, paths, methods, destination, timeouts } = surface;
  const headers = methods === undefined ? undefined : [ofMethods(methods)];
  const limits: RouteAction = {
    timeout: timeouts.answerMs === undefined ? NO_LIMIT : duration(timeouts.answerMs),
    idleTimeout: timeouts.idleMs === undefined ? undefined : duration(timeouts.idleMs),
  };
  return paths.map((path) => ({
    name,
    match: { ...matching(path), headers },
    ...(destination.kind === "service"
      ? { route: { cluster: localCluster(destination.service.name), ...limits } }
      : {
          requestHeadersToRemove: NOT_FOR_UPSTREAMS,
          route: { ...(destination.kind === "provider" ? TO_PROVIDER : TO_SERVER), ...limits },
        }),
    typedPerFilterConfig: processorOfRoute(destination.processor, all),
  }));
}

function matching(path: SurfacePath): RouteMatch {
  switch (path.kind) {
    case "exact":
      return { path: path.path };
    case "prefix":
      return { prefix: path.path };
    case "template":
      return { safeRegex: { regex: path.regex } };
  }
}

function ofMethods(methods: readonly string[]): HeaderMatcher {
  const [only, ...others] = methods;
  return {
    name: ":method",
    stringMatch:
      others.length === 0 ? { exact: only } : { safeRegex: { regex: methods.join("|") } },
  };
}

/**
 * Builds the routes of a listener for callers. Exact paths go before templates, and templates
 * before prefixes, of which the longest is first: the order of the surfaces does not matter.
 */
export function callerRoutes(
  name: CallerListenerName,
  surfaces: readonly Surface[],
): RouteConfiguration {
  const all = processorsOf(surfaces);
  const none = processorOfRoute(undefined, all);
  const routes = surfaces.flatMap((surface) => surfaceRoutes(surface, all));
  const { exact = [], template = [], prefix = [] } = Object.groupBy(routes, kindOf);
  return {
    name,
    responseHeadersToRemove: NOT_FOR_CLIENTS,
    virtualHosts: [
      {
        name,
        domains: ["*"],
        routes: [
          ON_ITS_WAY,
          TO_SERVER_ON_ITS_WAY,
          ...exact,
          ...template,
          ...(name === CallerListener.internal ? [{ ...HEALTHZ, typedPerFilterConfig: none }] : []),
          ...prefix.toSorted((a, b) => lengthOfPrefix(b) - lengthOfPrefix(a)),
          ...(name === CallerListener.external ? [{ ...NOTHING, typedPerFilterConfig: none }] : []),
        ],
      },
    ],
  };
}

function kindOf({ match }: Route): SurfacePath["kind"] {
  if (match?.path !== undefined) return "exact";
  return match?.safeRegex === undefined ? "prefix" : "template";
}

function lengthOfPrefix({ match }: Route): number {
  return match?.prefix?.length ?? 0;
}

const HEALTHZ: Route = {
  name: "healthz",
  match: { path: "/healthz" },
  directResponse: { status: 200, body: { inlineString: "ok\n" } },
};

/** Answers 404 for every path that no surface of the external listener serves. */
const NOTHING: Route = {
  name: "nothing",
  match: { prefix: "/" },
  directResponse: { status: 404, body: { inlineString: NOTHING_HERE } },
  responseHeadersToAdd: [
    {
      header: { key: "content-type", value: "application/json" },
      appendAction: "OVERWRITE_IF_EXISTS_OR_ADD",
    },
  ],
};

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
              timeout: NO_LIMIT,
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
              timeout: NO_LIMIT,
            },
          },
        ],
      },
    ],
  };
}
