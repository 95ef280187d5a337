/**
 * The table of the gateway's own error codes: stable, shown to clients, and kept equal to
 * docs/errors.md by a test.
 */
/** PublicError is an error as a client is shown it, in the form of the API that it called. */
export interface PublicError {
  readonly status: number;
  /** From the one table of codes of this file, or the upstream's own code. */
  readonly code: string;
  readonly message: string;
  readonly param?: string | undefined;
}

interface ErrorKind {
  readonly status: number;
  /** Meaning of the code, for the docs. */
  readonly meaning: string;
}

export const ERRORS = {
  missing_key: { status: 401, meaning: "No key was sent, or keys that differ." },
  invalid_key: { status: 401, meaning: "The gateway does not know this key." },
  wrong_surface: {
    status: 401,
    meaning: "A workload token was used under `/ext`, or an access key elsewhere.",
  },
  key_revoked: { status: 401, meaning: "The access key was revoked." },
  key_expired: {
    status: 401,
    meaning: "The access key, or the grace period of a rotated key, has expired.",
  },
  invalid_request: { status: 400, meaning: "The body is not what the called API defines." },
  unsupported_by_upstream: {
    status: 400,
    meaning: "The model's provider cannot express what the request asks for.",
  },
  ambiguous_model: {
    status: 400,
    meaning: "Several providers of the caller have this model: write `<provider>/<model>`.",
  },
  external_access_disabled: {
    status: 403,
    meaning: "The access key's provider does not allow external access.",
  },
  address_not_allowed: {
    status: 403,
    meaning: "The access key may not be used from the client's address.",
  },
  model_not_allowed: {
    status: 403,
    meaning: "The model exists, but the caller or its provider does not allow it.",
  },
  model_not_found: { status: 404, meaning: "No provider of the caller has this model." },
  server_not_allowed: {
    status: 403,
    meaning: "The access key is for another MCP server, or for a ModelProvider.",
  },
  server_not_found: { status: 404, meaning: "There is no MCP server of this name." },
  server_not_ready: { status: 503, meaning: "The MCP server's Provider is not ready." },
  origin_not_allowed: {
    status: 403,
    meaning: "The request comes from a web page whose origin is not allowed.",
  },
  host_not_allowed: { status: 403, meaning: "The `Host` header names a host that is not ours." },
  tool_not_allowed: {
    status: 403,
    meaning:
      "The policy does not allow the tool, prompt or resource. MCP clients get the status 200 " +
      "with this error in the body, which all of them show.",
  },
  session_not_found: {
    status: 404,
    meaning: "The MCP session has ended, or belongs to another key or server: start a new one.",
  },
  header_mismatch: {
    status: 400,
    meaning: "An MCP header differs from the body that it mirrors.",
  },
  not_acceptable: { status: 406, meaning: "The `Accept` header excludes what MCP answers with." },
  unsupported_media_type: { status: 415, meaning: "The body is not `application/json`." },
  field_not_allowed: {
    status: 403,
    meaning:
      "A field of the body names another model, an address or a key, which only the " +
      "gateway may choose.",
  },
  feature_not_allowed: {
    status: 403,
    meaning: "The request uses a feature of unknown cost, and the caller has a budget.",
  },
  guard_violation: {
    status: 403,
    meaning:
      "A guard found a prompt injection or a jailbreak; `detail` in the body says where, and by " +
      "which GuardBinding.",
  },
  not_found: { status: 404, meaning: "The gateway has no such path." },
  method_not_allowed: { status: 405, meaning: "The path does not allow this method." },
  request_timeout: { status: 408, meaning: "The request body did not arrive in time." },
  body_too_large: {
    status: 413,
    meaning: "The request body is above 32 MiB, or above 1 MiB for MCP servers.",
  },
  unsupported_encoding: {
    status: 415,
    meaning: "The request body is compressed; send it uncompressed.",
  },
  requests_per_minute_exceeded: {
    status: 429,
    meaning: "The agent has reached its limit of requests in 60 seconds.",
  },
  concurrent_requests_exceeded: {
    status: 429,
    meaning: "The agent has reached its limit of concurrent requests.",
  },
  tokens_per_request_exceeded: {
    status: 429,
    meaning:
      "The estimated prompt and the requested answer exceed the agent's limit for one request.",
  },
  tokens_per_day_exceeded: {
    status: 429,
    meaning: "The caller's tokens for today are used up, or reserved by calls under way.",
  },
  cost_per_day_exceeded: {
    status: 429,
    meaning: "The agent's budget for today is used up, or reserved by calls under way.",
  },
  requests_per_day_exceeded: {
    status: 429,
    meaning:
      "The requests of the access key, or of its MCP server for all keys, are used up today.",
  },
  upstream_unauthorized: {
    status: 502,
    meaning: "The MCP server does not accept the gateway's credential.",
  },
  credential_unavailable: {
    status: 503,
    meaning: "The gateway has no credential for the MCP server at the moment.",
  },
  external_tokens_per_day_exceeded: {
    status: 429,
    meaning: "The provider's tokens for all external callers today are used up, or reserved.",
  },
  bytes_in_flight_exceeded: {
    status: 429,
    meaning:
      "The caller's requests that are being uploaded or kept for retries are too large together.",
  },
  fair_share_exceeded: {
    status: 429,
    meaning:
      "The gateway is busy, and the caller has recently used more than its share; try again.",
  },
  not_implemented: { status: 501, meaning: "The model's provider has no such endpoint." },
  upstream_invalid: {
    status: 502,
    meaning: "The provider's answer does not conform to its API.",
  },
  upstream_error: {
    status: 502,
    meaning:
      "The provider refused with a body that does not conform to its API; the status is " +
      "the provider's.",
  },
  upstream_unavailable: {
    status: 503,
    meaning: "No attempt reached the provider or its fallbacks.",
  },
  upstream_rate_limited: {
    status: 429,
    meaning: "The provider asks for a longer wait than the gateway allows.",
  },
  upstream_timeout: { status: 504, meaning: "The provider did not begin its answer in time." },
  audit_unavailable: {
    status: 503,
    meaning: "The audit log cannot be written, so the request was refused; try again.",
  },
  overloaded: {
    status: 503,
    meaning: "The gateway holds as many request bodies as it can; try again.",
  },
  gateway_unavailable: {
    status: 503,
    meaning: "The gateway itself could not serve the request; try again.",
  },
  stream_interrupted: {
    status: 502,
    meaning: "The provider's stream ended before it was complete.",
  },
} as const satisfies Record<string, ErrorKind>;

export type ErrorCode = keyof typeof ERRORS;

export function publicError(code: ErrorCode, message: string, param?: string): PublicError {
  return { status: ERRORS[code].status, code, message, ...(param === undefined ? {} : { param }) };
}
