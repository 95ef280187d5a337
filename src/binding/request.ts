/**
 * Converts Envoy's description of a request to the single form that the policy evaluates. Ambiguous
 * requests are refused here in every mode: the proxy forwards exactly the bytes that it evaluated.
 */
import type { ServiceRequest } from "../providers/contract.ts";

/** A request as Envoy describes it. */
export interface RawRequest {
  readonly method: string;
  /** Path with its query. */
  readonly target: string;
  readonly authority: string;
  /** Lower-case names, in order; repeated headers are separate. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Buffer | undefined;
  /** Server name of the TLS handshake, empty if it named none; undefined on the plain listener. */
  readonly serverName: string | undefined;
}

export type ReadRequest =
  | { readonly kind: "request"; readonly request: ServiceRequest }
  | { readonly kind: "malformed"; readonly status: 400 | 421; readonly message: string };

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/**
 * Characters allowed in a path and a query on the wire: RFC 3986, and others that clients send
 * nevertheless. No space and no control byte.
 */
const TARGET = /^\/[\x21-\x7e]*$/;

const HOST =
  /^(?=.{1,253}$)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;

/** Returns whether a text is a host name in lower case, of the only form that a binding matches. */
export function isHostName(text: string): boolean {
  return HOST.test(text);
}

export function readRequest(raw: RawRequest): ReadRequest {
  const malformed = (message: string, status: 400 | 421 = 400): ReadRequest => ({
    kind: "malformed",
    status,
    message,
  });
  if (!TOKEN.test(raw.method))
    return malformed("The method is not a valid HTTP token (RFC 9110 section 5.6.2).");
  const host = canonicalHost(raw.authority, raw.serverName !== undefined);
  if (host === undefined) {
    return malformed(
      "The host must be a host name in lower case, without a trailing dot, and without a " +
        "port. Over TLS, port 443 may be named.",
    );
  }
  if (raw.serverName !== undefined && raw.serverName.toLowerCase() !== host) {
    return malformed(
      `The TLS connection is for ${JSON.stringify(raw.serverName)}, but the request is for ` +
        `${host}.`,
      421,
    );
  }
  if (!TARGET.test(raw.target))
    return malformed(
      "The path must begin with / and contain no space, control byte or non-ASCII byte.",
    );
  if (/[\\#]/.test(raw.target)) return malformed("The path contains a backslash or a #.");
  const headers = new Map<string, string>();
  for (const [name, value] of raw.headers) {
    if (name === "host") return malformed("The request has two hosts.");
    if (SINGLE.has(name) && headers.has(name)) return malformed(`The header ${name} occurs twice.`);
    const known = headers.get(name);
    headers.set(name, known === undefined ? value : `${known}, ${value}`);
  }
  const mark = raw.target.indexOf("?");
  return {
    kind: "request",
    request: {
      method: raw.method,
      host,
      path: mark < 0 ? raw.target : raw.target.slice(0, mark),
      query: mark < 0 ? "" : raw.target.slice(mark + 1),
      headers,
      body: raw.body,
    },
  };
}

/**
 * Headers that affect the decision, and of which two readers could use different values if they
 * occur twice.
 */
const SINGLE: ReadonlySet<string> = new Set([
  "authorization",
  "content-type",
  "content-length",
  "content-encoding",
  "x-amz-target",
  "x-amz-copy-source",
  "x-amz-content-sha256",
  "x-http-method-override",
]);

/**
 * Returns the host without the port of HTTPS, which only requests over TLS may name: every request
 * is forwarded there, and the upstream receives the host as sent. Returns undefined for text that
 * is not a host name, and for other spellings of one.
 */
export function canonicalHost(authority: string, overTls: boolean): string | undefined {
  const match = /^([^:@[\]]+)(?::(\d{1,5}))?$/.exec(authority);
  if (match === null) return undefined;
  const port = match[2];
  if (port !== undefined && !(overTls && Number(port) === 443)) return undefined;
  const name = match[1] as string;
  return isHostName(name) ? name : undefined;
}
