/** Anthropic's error body: `{type: "error", error: {type, message}}`. */
import type { PublicError } from "../../../access/errors.ts";
import { text } from "../error-text.ts";
import { isObject } from "../fields.ts";
import type { UpstreamError } from "../model.ts";

/** https://docs.claude.com/en/api/errors */
const TYPES: Readonly<Record<number, string>> = {
  400: "invalid_request_error",
  401: "authentication_error",
  402: "billing_error",
  403: "permission_error",
  404: "not_found_error",
  409: "conflict_error",
  413: "request_too_large",
  429: "rate_limit_error",
  503: "overloaded_error",
  504: "timeout_error",
  529: "overloaded_error",
};

function typeOf(status: number): string {
  return TYPES[status] ?? (status >= 500 ? "api_error" : "invalid_request_error");
}

export function renderError({ status, code, message, param }: PublicError): string {
  const type = typeOf(status);
  const details = { error_code: code, ...(param === undefined ? {} : { param }) };
  return JSON.stringify({
    type: "error",
    error: { type, message, ...(code === type ? {} : { details }) },
  });
}

export function renderStreamError(error: PublicError): string {
  return `event: error\ndata: ${renderError(error)}\n\n`;
}

export function parseError(status: number, body: unknown): UpstreamError | undefined {
  const error = isObject(body) ? body["error"] : undefined;
  if (!isObject(error)) return undefined;
  const message = text(error["message"]);
  if (message === undefined) return undefined;
  return { status, code: text(error["type"]) ?? typeOf(status), message, param: undefined };
}

/**
 * An error inside a stream has no HTTP status: returns that of the same error outside of a stream.
 */
export function statusOfCode(code: string): number {
  if (code === "overloaded_error") return 529;
  const found = Object.entries(TYPES).find(([, type]) => type === code);
  return found === undefined ? 502 : Number(found[0]);
}
