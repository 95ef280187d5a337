/**
 * Surfaces: what the gateway serves to callers. Each feature declares its own in one value, and
 * Envoy's configuration is made from the list of all of them.
 */
import type { ProcessingMode, StringMatcher } from "../../gen/messages.ts";
import { BUFFER_LIMIT_BYTES, RESERVED_NAMES } from "./names.ts";

/**
 * Names of the listeners of surfaces: the internal one, the one for an ingress, and the one on
 * which the bridge of MCP's old transport calls the gateway for its clients.
 */
export const CallerListener = {
  internal: "svc-gateway",
  external: "svc-external",
  loop: "svc-mcp-loop",
} as const;

export type CallerListenerName = (typeof CallerListener)[keyof typeof CallerListener];

/** A server of ours, on a Unix socket between Envoy and the gateway service. */
export interface LocalEndpoint {
  /** Unique name, from which the name of its cluster is made. */
  readonly name: string;
  /** File name of the Unix socket in the run folder. */
  readonly socket: string;
}

/** ProcessorEndpoint is an external processor (ext_proc), and what Envoy sends to it. */
export interface ProcessorEndpoint extends LocalEndpoint {
  /** Headers of requests and responses that Envoy forwards to it; no others are sent. */
  readonly headers: readonly StringMatcher[];
  readonly mode: ProcessingMode;
  /** Whether its answers may change the mode of a request. */
  readonly changesMode: boolean;
  /** Maximum time for an answer; when it has passed, the request fails closed. */
  readonly messageTimeoutMs: number;
  /**
   * Whether it also sees the answers of Envoy itself to requests that have no route yet, e.g. to a
   * malformed one. At most one processor of a listener does.
   */
  readonly seesRequestsWithoutRoute: boolean;
}

/** A path that a surface serves. Envoy normalises paths before it compares them. */
export type SurfacePath =
  | { readonly kind: "exact"; readonly path: string }
  | { readonly kind: "prefix"; readonly path: string }
  /** An expression of RE2 that the whole path matches. */
  | { readonly kind: "template"; readonly regex: string };

export type SurfaceDestination =
  /**
   * The cluster of a provider, which the processor names in `x-svc-cluster`. A request without this
   * header has no destination. Failed attempts are retried.
   */
  | { readonly kind: "provider"; readonly processor: ProcessorEndpoint }
  /**
   * The cluster of an MCP server, which the processor names in `x-svc-server`. A request without
   * this header has no destination. It is sent once.
   */
  | { readonly kind: "server"; readonly processor: ProcessorEndpoint }
  /** An HTTP server of ours; undefined processor for none. */
  | {
      readonly kind: "service";
      readonly service: LocalEndpoint;
      readonly processor: ProcessorEndpoint | undefined;
    };

export interface Surface {
  /** Unique name, also of its routes. */
  readonly name: string;
  readonly listeners: readonly CallerListenerName[];
  readonly paths: readonly SurfacePath[];
  /** Methods that it serves; undefined for all. */
  readonly methods: readonly string[] | undefined;
  readonly destination: SurfaceDestination;
  /**
   * Maximum size of a request body that is buffered, which the processor enforces; undefined if no
   * body is buffered.
   */
  readonly bodyLimitBytes: number | undefined;
  readonly timeouts: {
    /** Maximum time for the whole answer; undefined for none. */
    readonly answerMs: number | undefined;
    /** Maximum pause of an upload; undefined for the listener's. */
    readonly idleMs: number | undefined;
  };
}

/** Returns the surfaces of a listener. */
export function surfacesOf(
  surfaces: readonly Surface[],
  listener: CallerListenerName,
): readonly Surface[] {
  return surfaces.filter(({ listeners }) => listeners.includes(listener));
}

/** Returns the processors of surfaces, each once. */
export function processorsOf(surfaces: readonly Surface[]): readonly ProcessorEndpoint[] {
  return [...new Set(surfaces.flatMap(({ destination }) => destination.processor ?? []))];
}

/** Returns the HTTP servers of surfaces, each once. */
export function servicesOf(surfaces: readonly Surface[]): readonly LocalEndpoint[] {
  return [
    ...new Set(
      surfaces.flatMap(({ destination }) =>
        destination.kind === "service" ? [destination.service] : [],
      ),
    ),
  ];
}

/**
 * Checks that the surfaces of a gateway can be served together.
 * @param others endpoints that are not of a surface
 * @throws Error that names the surface or the endpoint
 */
export function checkSurfaces(
  surfaces: readonly Surface[],
  others: readonly LocalEndpoint[] = [],
): void {
  const endpoints = [...processorsOf(surfaces), ...servicesOf(surfaces), ...others];
  unique(
    "surfaces",
    surfaces.map(({ name }) => name),
  );
  unique("endpoints", [...endpoints.map(({ name }) => name), ...RESERVED_NAMES]);
  unique(
    "sockets",
    endpoints.map(({ socket }) => socket),
  );
  for (const { name, bodyLimitBytes, destination } of surfaces) {
    const buffered = destination.processor?.mode.requestBodyMode === "BUFFERED";
    if (buffered && bodyLimitBytes === undefined)
      throw new Error(`surface ${name}: bodies are buffered, but there is no bodyLimitBytes`);
    if (bodyLimitBytes !== undefined && bodyLimitBytes >= BUFFER_LIMIT_BYTES)
      throw new Error(`surface ${name}: bodyLimitBytes is not below Envoy's buffers`);
  }
  for (const listener of Object.values(CallerListener)) {
    const own = surfacesOf(surfaces, listener);
    unique(`paths of ${listener}`, own.flatMap(pathsWithMethods));
    const first = processorsOf(own).filter((processor) => processor.seesRequestsWithoutRoute);
    if (first.length > 1)
      throw new Error(`${listener}: several processors see requests without a route`);
  }
}

function pathsWithMethods({ paths, methods }: Surface): string[] {
  return paths.flatMap((path) =>
    (methods ?? ["any method"]).map((method) => `${method} ${JSON.stringify(path)}`),
  );
}

function unique(what: string, names: readonly string[]): void {
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw new Error(`two ${what} are the same: ${twice}`);
}
