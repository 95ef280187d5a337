/**
 * `spec.baseURL` of a ModelProvider: parsed once, strictly, so that no later code has to validate a
 * URL again.
 */

/** Address of an upstream. */
export interface Endpoint {
  readonly tls: boolean;
  /** Host name (lower case, punycode) or IP address; an IPv6 address without brackets. */
  readonly host: string;
  readonly port: number;
  /** Path prefix without a trailing slash; empty for none. */
  readonly basePath: string;
}

export type BaseURLResult =
  | { readonly kind: "ok"; readonly endpoint: Endpoint }
  | { readonly kind: "error"; readonly message: string };

/**
 * Valid path prefixes: no escapes, no `.` segments, no doubled slash, so that a prefix is its own
 * canonical form.
 */
const PATH = /^(?:\/(?!\.{1,2}(?:\/|$))[A-Za-z0-9\-._~!$&'()+,;=:@]+)*$/;

const CHARACTER = "[A-Za-z0-9._~!$&'()+,;=:@-]";
const NO_DOT = CHARACTER.replace(".", "");
/** A segment that is neither `.` nor `..`, without look-ahead. */
const SEGMENT = String.raw`(?:\.?${NO_DOT}${CHARACTER}*|\.\.${CHARACTER}+)`;

/**
 * The form of a base URL as RE2, for the API server: all that {@link parseBaseURL} checks but the
 * validity of the host and the port.
 */
export const BASE_URL_FORM =
  String.raw`^[hH][tT][tT][pP][sS]?://[^\s/?#@\\\pC]+` + `(?:/(?:${SEGMENT}(?:/${SEGMENT})*/?)?)?$`;

/** Parses an upstream's base URL: http or https, a host, optionally a port and a plain path. */
export function parseBaseURL(text: string): BaseURLResult {
  const scheme = /^(https?):\/\/([^/]*)(\/.*)?$/i.exec(text);
  // Checked on the text, because the URL parser drops tabs and newlines, converts "\" to "/" and
  // resolves "..".
  if (/[\s\\\p{C}]/u.test(text))
    return error("must hold no white space, control characters or backslashes");
  if (scheme === null)
    return error("must be an http or https URL, for example https://api.openai.com/v1");
  if (text.includes("?") || text.includes("#")) return error("must have no query and no fragment");
  const authority = scheme[2] ?? "";
  if (authority.includes("@"))
    return error("must hold no user name or password; use apiKeySecretRef");
  if (authority === "" || !URL.canParse(text)) return error("is not a URL with a valid host");
  const basePath = (scheme[3] ?? "").replace(/\/$/, "");
  if (!PATH.test(basePath))
    return error("must have a plain path: no '//', '.' or '..' segments, no escapes");

  const url = new URL(text);
  const tls = url.protocol === "https:";
  const port = url.port === "" ? (tls ? 443 : 80) : Number(url.port);
  if (port === 0) return error("must not name port 0");
  const host = url.hostname.startsWith("[") ? url.hostname.slice(1, -1) : url.hostname;
  return { kind: "ok", endpoint: { tls, host, port, basePath } };
}

function error(message: string): BaseURLResult {
  return { kind: "error", message };
}
