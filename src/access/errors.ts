/**
 * The one table of the gateway's own error codes: stable, shown to clients, kept equal to
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
  /** What it means, for the docs. */
  readonly meaning: string;
}

export const ERRORS = {
  missing_key: { status: 401, meaning: "No key was sent, or keys that differ." },
  invalid_key: { status: 401, meaning: "The key is none that this gateway knows." },
  wrong_surface: {
    status: 401,
    meaning: "A workload token under `/ext`, or an access key elsewhere: it opens nothing there.",
  },
  key_revoked: { status: 401, meaning: "The access key was revoked." },
  key_expired: {
    status: 401,
    meaning: "The access key, or the grace period of one that was rotated, is over.",
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
    meaning: "The access key's provider is not open to calls from outside.",
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
  field_not_allowed: {
    status: 403,
    meaning:
      "A field of the body names another model, an address or a key, which the gateway alone chooses.",
  },
  feature_not_allowed: {
    status: 403,
    meaning: "The request asks for a feature whose cost is not known, and the caller has a budget.",
  },
  not_found: { status: 404, meaning: "The gateway has no such path." },
  method_not_allowed: { status: 405, meaning: "The path exists, with another method." },
  request_timeout: { status: 408, meaning: "The request body did not arrive in time." },
  body_too_large: { status: 413, meaning: "The request body is above 32 MiB." },
  unsupported_encoding: { status: 415, meaning: "The request body is compressed; send it plain." },
  requests_per_minute_exceeded: {
    status: 429,
    meaning: "The agent's requests in the last 60 seconds are used up.",
  },
  concurrent_requests_exceeded: {
    status: 429,
    meaning: "The agent has as many requests in flight as it may have.",
  },
  tokens_per_request_exceeded: {
    status: 429,
    meaning:
      "The prompt, estimated, and the answer asked for are more than the agent may have in one request.",
  },
  tokens_per_day_exceeded: {
    status: 429,
    meaning: "The caller's tokens of today are used up, or reserved by calls under way.",
  },
  cost_per_day_exceeded: {
    status: 429,
    meaning: "The agent's money of today is used up, or reserved by calls under way.",
  },
  requests_per_day_exceeded: {
    status: 429,
    meaning: "The access key's requests of today are used up.",
  },
  external_tokens_per_day_exceeded: {
    status: 429,
    meaning:
      "The tokens of today that the provider has for all external callers are used up, or reserved.",
  },
  bytes_in_flight_exceeded: {
    status: 429,
    meaning: "The caller's requests that are being uploaded or retried are too large together.",
  },
  fair_share_exceeded: {
    status: 429,
    meaning:
      "The gateway is busy, and the caller has used more than its share of it for a while; try again.",
  },
  not_implemented: { status: 501, meaning: "The model's provider has no such endpoint." },
  upstream_invalid: {
    status: 502,
    meaning: "The provider answered with something that is not its API.",
  },
  upstream_error: {
    status: 502,
    meaning: "The provider said no, with a body that is not its API's; the status is its own.",
  },
  upstream_unavailable: {
    status: 503,
    meaning: "No attempt reached the provider or its fallbacks.",
  },
  upstream_rate_limited: {
    status: 429,
    meaning: "The provider asks to wait longer than the gateway may wait.",
  },
  upstream_timeout: { status: 504, meaning: "The provider did not begin its answer in time." },
  audit_unavailable: {
    status: 503,
    meaning: "The audit log cannot be written, and nothing goes unrecorded; try again.",
  },
  overloaded: {
    status: 503,
    meaning: "The gateway holds as many request bodies as it can; try again.",
  },
  gateway_unavailable: {
    status: 503,
    meaning: "The gateway itself could not serve the request; try again.",
  },
  stream_interrupted: { status: 502, meaning: "The provider's stream ended in the middle." },
} as const satisfies Record<string, ErrorKind>;

export type ErrorCode = keyof typeof ERRORS;

export function publicError(code: ErrorCode, message: string, param?: string): PublicError {
  return { status: ERRORS[code].status, code, message, ...(param === undefined ? {} : { param }) };
}
