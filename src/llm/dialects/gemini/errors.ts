/**
 * Google's error body: `{error: {code, message, status, details}}`, the status a name of
 * google.rpc.Code.
 */
import type { PublicError } from "../../../access/errors.ts";
import { text } from "../error-text.ts";
import { isObject } from "../fields.ts";
import type { UpstreamError } from "../model.ts";

/** https://cloud.google.com/apis/design/errors#handling_errors */
const NAMES: Readonly<Record<number, string>> = {
  400: "INVALID_ARGUMENT",
  401: "UNAUTHENTICATED",
  402: "FAILED_PRECONDITION",
  403: "PERMISSION_DENIED",
  404: "NOT_FOUND",
  408: "DEADLINE_EXCEEDED",
  409: "ABORTED",
  413: "INVALID_ARGUMENT",
  429: "RESOURCE_EXHAUSTED",
  499: "CANCELLED",
  500: "INTERNAL",
  501: "UNIMPLEMENTED",
  502: "UNAVAILABLE",
  503: "UNAVAILABLE",
  504: "DEADLINE_EXCEEDED",
  529: "UNAVAILABLE",
};

function nameOf(status: number): string {
  return NAMES[status] ?? (status >= 500 ? "INTERNAL" : "INVALID_ARGUMENT");
}

export function renderError({ status, code, message, param }: PublicError): string {
  const name = nameOf(status);
  const info = {
    "@type": "type.googleapis.com/google.rpc.ErrorInfo",
    reason: code.toUpperCase(),
    domain: "svc.io",
    ...(param === undefined ? {} : { metadata: { param } }),
  };
  return JSON.stringify({
    error: { code: status, message, status: name, ...(code === name ? {} : { details: [info] }) },
  });
}

export function renderStreamError(error: PublicError): string {
  return `data: ${renderError(error)}\n\n`;
}

/** Google wraps some errors in a list of one. */
export function parseError(status: number, body: unknown): UpstreamError | undefined {
  const first: unknown = Array.isArray(body) ? body[0] : body;
  const error = isObject(first) ? first["error"] : undefined;
  if (!isObject(error)) return undefined;
  const message = text(error["message"]);
  if (message === undefined) return undefined;
  return { status, code: text(error["status"]) ?? nameOf(status), message, param: undefined };
}

/** Inside a stream the HTTP status is the body's own `code`. */
export function statusOfBody(body: unknown): number {
  const error = isObject(body) ? body["error"] : undefined;
  const code = isObject(error) ? error["code"] : undefined;
  return typeof code === "number" && code >= 400 && code < 600 ? code : 502;
}
