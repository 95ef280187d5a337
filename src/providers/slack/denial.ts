/**
 * Denials in the form of the Web API's errors: SDKs look for `ok` and `error`, and show
 * `response_metadata.messages`. https://docs.slack.dev/apis/web-api#responses
 */
import type { Denial, ServiceRequest, WordedDenial } from "../contract.ts";

/** Returns undefined for files, which are no calls of the Web API. */
export function wordDenial(request: ServiceRequest, denial: Denial): WordedDenial | undefined {
  if (request.host !== "slack.com") return undefined;
  const { code, message, details } = denial;
  const body = {
    ok: false,
    error: code,
    response_metadata: { messages: [`[ERROR] ${message}`] },
    code,
    message,
    ...details,
    source: "svc",
  };
  return {
    headers: [["content-type", "application/json; charset=utf-8"]],
    body: `${JSON.stringify(body)}\n`,
  };
}
