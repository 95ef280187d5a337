/**
 * Headers and parameters by which a request asks to be treated as another request: some frameworks
 * and proxies take the method, the path or the host from them. One list for every service and mode,
 * documented in docs/binding.md.
 */
import type { ServiceRequest } from "../providers/contract.ts";
import { parameterNames, readingsOf } from "./parameter-names.ts";

/**
 * Headers that ask for another request. No client of these services sends them by accident: the
 * request is refused, so that the sender learns about it.
 */
export const REFUSED_HEADERS: ReadonlySet<string> = new Set([
  "base-url",
  "http-url",
  "proxy-host",
  "proxy-url",
  "request-uri",
  "x-http-destinationurl",
  "x-http-host-override",
  "x-http-method",
  "x-http-method-override",
  "x-http-path-override",
  "x-method",
  "x-method-override",
  "x-original-host",
  "x-original-method",
  "x-original-path",
  "x-original-uri",
  "x-original-url",
  "x-override-url",
  "x-proxy-url",
  "x-replaced-path",
  "x-request-method",
  "x-request-uri",
  "x-rewrite-path",
  "x-rewrite-uri",
  "x-rewrite-url",
  "x-tunneled-method",
]);

/**
 * Headers in which proxies describe the connection. Clients behind a proxy send them in good faith,
 * but a service may take its host, prefix or client from them, so they are removed.
 */
export const STRIPPED_HEADERS: ReadonlySet<string> = new Set([
  "cf-connecting-ip",
  "client-ip",
  "fastly-client-ip",
  "forwarded",
  "true-client-ip",
  "x-backend-host",
  "x-client-ip",
  "x-cluster-client-ip",
  "x-host",
  "x-originating-ip",
  "x-real-ip",
  "x-remote-addr",
  "x-remote-ip",
]);

/** Prefix of further headers: `x-forwarded-host`, `-uri`, `-prefix`, `-path`, ... */
export const STRIPPED_PREFIX = "x-forwarded";

export function isStripped(header: string): boolean {
  return STRIPPED_HEADERS.has(header) || header.startsWith(STRIPPED_PREFIX);
}

/** Normalized as by {@link readingsOf}. */
const METHOD_PARAMETERS: ReadonlySet<string> = new Set([
  "$httpmethod",
  "$http_method",
  "$method",
  "__method",
  "_http_method",
  "_http_method_override",
  "_httpmethod",
  "_method",
  "http_method_override",
  "x_http_method",
  "x_http_method_override",
  "x_method_override",
]);

/**
 * Returns the reason why the request cannot be forwarded; undefined if it does not ask to be
 * treated as another request.
 */
export function asksForAnother({ headers, query, body }: ServiceRequest): string | undefined {
  for (const name of headers.keys())
    if (REFUSED_HEADERS.has(name))
      return (
        `The header ${name} asks for another request than the request line. Send that ` +
        "request directly."
      );
  if (namesMethod(query) === "yes")
    return "The query contains a parameter that asks for another method. Use that method directly.";
  if (body !== undefined && isForm(headers) && namesMethod(body.toString("utf8")) !== "no")
    return (
      "The form contains, or may contain, a parameter that asks for another method: use that " +
      "method directly, and send JSON as application/json."
    );
  return undefined;
}

function isForm(headers: ReadonlyMap<string, string>): boolean {
  return /^\s*application\/x-www-form-urlencoded\b/i.test(headers.get("content-type") ?? "");
}

/** Returns `doubt` if a name cannot be interpreted, or there are too many names. */
function namesMethod(text: string): "yes" | "no" | "doubt" {
  let doubt = false;
  let left = MAX_UNPLAIN_NAMES;
  for (const { raw } of parameterNames(text)) {
    // Every name of the list contains it, unless an encoding hides it.
    if (/^[!-$'-*,-~]*$/.test(raw) ? !/method/i.test(raw) : raw.length > MAX_NAME) continue;
    left -= 1;
    const readings = left < 0 ? undefined : readingsOf(raw);
    if (left < 0) return "doubt";
    doubt ||= readings === undefined;
    for (const reading of readings ?? []) if (METHOD_PARAMETERS.has(reading)) return "yes";
  }
  return doubt ? "doubt" : "no";
}

/** Longer than any of the names in any encoding. */
const MAX_NAME = 1_000;
/**
 * Maximum number of encoded names in a form; a form with more is not examined and not forwarded.
 */
const MAX_UNPLAIN_NAMES = 10_000;
