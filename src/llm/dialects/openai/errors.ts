/** OpenAI's error body: `{error: {message, type, param, code}}`. */
import type { PublicError } from "../../../access/errors.ts";
import { isObject } from "../fields.ts";
import type { UpstreamError } from "../model.ts";
import { text } from "../error-text.ts";

const TYPES: Readonly<Record<number, string>> = {
  401: "authentication_error",
  402: "insufficient_quota",
  403: "permission_error",
  404: "not_found_error",
  409: "conflict_error",
  413: "invalid_request_error",
  429: "rate_limit_error",
};

function typeOf(status: number): string {
  return TYPES[status] ?? (status >= 500 ? "server_error" : "invalid_request_error");
}

export function renderError({ status, code, message, param }: PublicError): string {
  return JSON.stringify({ error: { message, type: typeOf(status), param: param ?? null, code } });
}

export function renderStreamError(error: PublicError): string {
  return `data: ${renderError(error)}\n\n`;
}

/**
 * Some servers with this dialect put the error at the top level (vLLM) or send a string (Ollama).
 */
export function parseError(status: number, body: unknown): UpstreamError | undefined {
  if (!isObject(body)) return undefined;
  const error = body["error"] ?? body;
  if (typeof error === "string")
    return { status, code: typeOf(status), message: error, param: undefined };
  if (!isObject(error)) return undefined;
  const message = text(error["message"]) ?? text(body["detail"]);
  if (message === undefined) return undefined;
  return {
    status,
    code: text(error["code"]) ?? text(error["type"]) ?? typeOf(status),
    message,
    param: text(error["param"]),
  };
}

/** Returns whether an official client of this dialect finds the error message. */
export function isNativeError(body: unknown): boolean {
  return isObject(body) && isObject(body["error"]) && text(body["error"]["message"]) !== undefined;
}

/** An error inside a stream has no HTTP status. */
export function statusOfCode(code: string): number {
  switch (code) {
    case "rate_limit_exceeded":
    case "rate_limit_error":
    case "insufficient_quota":
      return 429;
    case "invalid_request_error":
    case "context_length_exceeded":
      return 400;
    default:
      return 502;
  }
}
