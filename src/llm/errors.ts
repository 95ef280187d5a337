/** The one table of the gateway's own error codes: stable, shown to clients, kept equal to docs/errors.md by a test. */
import type { PublicError } from "./dialects/dialect.ts";

interface ErrorKind {
  readonly status: number;
  /** What it means, for the docs. */
  readonly meaning: string;
}

export const ERRORS = {
  missing_key: { status: 401, meaning: "No key was sent, or keys that differ." },
  invalid_key: { status: 401, meaning: "The key names no workload." },
  invalid_request: { status: 400, meaning: "The body is not what the called API defines." },
  unsupported_by_upstream: { status: 400, meaning: "The model's provider cannot express what the request asks for." },
  ambiguous_model: { status: 400, meaning: "Several providers of the agent have this model: write `<provider>/<model>`." },
  model_not_allowed: { status: 403, meaning: "The model exists, but the agent or its provider does not allow it." },
  model_not_found: { status: 404, meaning: "No provider of the agent has this model." },
  not_found: { status: 404, meaning: "The gateway has no such path." },
  method_not_allowed: { status: 405, meaning: "The path exists, with another method." },
  body_too_large: { status: 413, meaning: "The request body is above 32 MiB." },
  unsupported_encoding: { status: 415, meaning: "The request body is compressed; send it plain." },
  not_implemented: { status: 501, meaning: "The model's provider has no such endpoint." },
  upstream_invalid: { status: 502, meaning: "The provider answered with something that is not its API." },
  upstream_error: { status: 502, meaning: "The provider said no, with a body that is not its API's; the status is its own." },
  upstream_unavailable: { status: 503, meaning: "No attempt reached the provider or its fallbacks." },
  upstream_rate_limited: { status: 429, meaning: "The provider asks to wait longer than the gateway may wait." },
  upstream_timeout: { status: 504, meaning: "The provider did not begin its answer in time." },
  gateway_unavailable: { status: 503, meaning: "The gateway itself could not serve the request; try again." },
  stream_interrupted: { status: 502, meaning: "The provider's stream ended in the middle." },
} as const satisfies Record<string, ErrorKind>;

export type ErrorCode = keyof typeof ERRORS;

export function publicError(code: ErrorCode, message: string, param?: string): PublicError {
  return { status: ERRORS[code].status, code, message, ...(param === undefined ? {} : { param }) };
}
