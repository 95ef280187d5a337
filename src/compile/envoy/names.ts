/** Names that Envoy's configuration and the processors share. */

/** Clusters of `envoy/bootstrap.yaml`. */
export const Cluster = {
  control: "svc_control",
  llm: "svc_llm",
  attempt: "svc_attempt",
  api: "svc_api",
  /** Endpoints of the internal listener, one priority for each attempt after the first. */
  attempts: "svc_attempts",
} as const;

/** Most attempts a request can have, the first included: the priorities of {@link Cluster.attempts} plus one. */
export const MAX_ATTEMPTS = 16;

export const ATTEMPT_LISTENER = "svc-attempt";

/** Headers between our processors and Envoy's router. Clients' own are removed; none leaves towards an upstream. */
export const InternalHeader = {
  /** Cluster of the first attempt. */
  cluster: "x-svc-cluster",
  /** Cluster of an attempt after the first. */
  upstream: "x-svc-upstream",
  /** On Envoy's own replies: `<response flags> <details>`. */
  local: "x-svc-local",
} as const;

/** The call id travels as this header: upstreams know it, and Envoy's access log carries it. */
export const CALL_ID_HEADER = "x-request-id";

/** Direct cluster of a ModelProvider. */
export function upstreamCluster(providerKey: string): string {
  return `upstream/${providerKey}`;
}

/** Cluster of a ModelProvider whose later priorities are the attempts after the first. */
export function chainCluster(providerKey: string): string {
  return `chain/${providerKey}`;
}

/** Largest request body, bytes; above it the answer is 413. */
export const MAX_REQUEST_BODY_BYTES = 32 * 1024 * 1024;

/**
 * Envoy's buffers. Above the body limit, so that a body within it is never cut off, and so that its translation (JSON
 * of another dialect may be longer) can still be retried: a body above this limit would silently disable retries.
 */
export const BUFFER_LIMIT_BYTES = 48 * 1024 * 1024;
