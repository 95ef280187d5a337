/** Names that Envoy's configuration and the processors share. */
import type { ProviderPolicy } from "../../policy/snapshot.ts";

/** Clusters of `envoy/bootstrap.yaml`. */
export const Cluster = {
  control: "svc_control",
  llm: "svc_llm",
  attempt: "svc_attempt",
  api: "svc_api",
  /** Endpoints of the internal listener, one priority for each attempt after the first. */
  attempts: "svc_attempts",
} as const;

/**
 * Most attempts a request can have, the first included: the priorities of {@link Cluster.attempts}
 * plus one.
 */
export const MAX_ATTEMPTS = 16;

export const ATTEMPT_LISTENER = "svc-attempt";

/**
 * Headers between our processors and Envoy's router. Clients' own are removed; none leaves towards
 * an upstream.
 */
export const InternalHeader = {
  /** Cluster of the first attempt. */
  cluster: "x-svc-cluster",
  /** Cluster of an attempt after the first. */
  upstream: "x-svc-upstream",
  /** Cluster behind the relay: see `llm/relay.ts`. */
  relay: "x-svc-relay",
  /** Address of the connection's other end, as Envoy sees it: see `access/client-address.ts`. */
  peer: "x-svc-peer",
  /** On Envoy's own replies: `<response flags> <details>`. */
  local: "x-svc-local",
} as const;

/** The call id travels as this header: upstreams know it, and Envoy's access log carries it. */
export const CALL_ID_HEADER = "x-request-id";

/**
 * Where a provider is, in its clusters' names: after an edit of the address it is another cluster.
 * A request that was made ready for the old address can only go there, and a key never reaches a
 * host that it was not meant for.
 */
function place({ key, endpoint }: ProviderPolicy): string {
  return `${key}@${endpoint.tls ? "https" : "http"}://${endpoint.host}:${endpoint.port}`;
}

/** Cluster of a provider's own address, where the relay stands before it. */
export function relayedCluster(provider: ProviderPolicy): string {
  return `relayed/${place(provider)}`;
}

/** Unix sockets of the relay, in the run folder. */
export const RelaySocket = {
  /** The relay's, that Envoy sends to. */
  relay: "relay.sock",
  /** Envoy's, that the relay sends to. */
  envoy: "relay-envoy.sock",
} as const;

/** Cluster of the first hop to a ModelProvider. */
export function upstreamCluster(provider: ProviderPolicy): string {
  return `upstream/${place(provider)}`;
}

/** Cluster of a ModelProvider whose later priorities are the attempts after the first. */
export function chainCluster(provider: ProviderPolicy): string {
  return `chain/${place(provider)}`;
}

/** Largest request body, bytes; above it the answer is 413. */
export const MAX_REQUEST_BODY_BYTES = 32 * 1024 * 1024;

/**
 * Envoy's buffers. Above the body limit, so that a body within it is never cut off, and so that its
 * translation (JSON of another dialect may be longer) can still be retried: a body above this limit
 * would silently disable retries.
 */
export const BUFFER_LIMIT_BYTES = 48 * 1024 * 1024;
