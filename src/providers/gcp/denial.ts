/**
 * Denials in the form of Google's errors, whose message is all that its client libraries show.
 * https://cloud.google.com/apis/design/errors#http_mapping
 */
import type { Denial, WordedDenial } from "../contract.ts";

/** Names of the canonical codes, by HTTP status. */
const STATUS: Readonly<Record<number, string>> = {
  400: "INVALID_ARGUMENT",
  403: "PERMISSION_DENIED",
  413: "INVALID_ARGUMENT",
  502: "UNAVAILABLE",
  503: "UNAVAILABLE",
};

/** `errors` is the older part, which the clients of Cloud Storage and BigQuery read. */
export function wordDenial({ status, code, message, details }: Denial): WordedDenial {
  const reason = status === 403 ? "forbidden" : status >= 500 ? "backendError" : "invalid";
  const error = {
    code: status,
    message,
    status: STATUS[status] ?? "UNKNOWN",
    errors: [{ message, domain: "global", reason }],
  };
  return {
    headers: [["content-type", "application/json; charset=UTF-8"]],
    body: `${JSON.stringify({ error, code, message, ...details, source: "svc" })}\n`,
  };
}
