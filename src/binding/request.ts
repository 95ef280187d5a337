/**
 * From what Envoy says of a request to the one form of it that is judged. What could be read in two
 * ways is refused here, whatever the mode: the bytes that are judged are the bytes that are
 * forwarded.
 */
import type { ServiceRequest } from "../providers/contract.ts";

/** As Envoy gives it. */
export interface RawRequest {
  readonly method: string;
  /** With its query. */
  readonly target: string;
  readonly authority: string;
  readonly scheme: string;
  /** Lower-case names, in order, repeated ones apart. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Buffer | undefined;
  /**
   * Server name of the TLS handshake; undefined where there was no TLS, empty where it named none.
   */
  readonly serverName: string | undefined;
}

export type ReadRequest =
  | { readonly kind: "request"; readonly request: ServiceRequest }
  | { readonly kind: "malformed"; readonly status: 400 | 421; readonly message: string };

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/**
 * What a path and a query may hold on the wire: RFC 3986, and what clients send all the same. No
 * space, no control byte.
 */
const TARGET = /^\/[\x21-\x7e]*$/;

const HOST =
  /^(?=.{1,253}$)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;

export function readRequest(raw: RawRequest): ReadRequest {
  const malformed = (message: string, status: 400 | 421 = 400): ReadRequest => ({
    kind: "malformed",
    status,
    message,
  });
  if (!TOKEN.test(raw.method)) return malformed("The method is no token.");
  const host = canonicalHost(raw.authority, raw.scheme);
  if (host === undefined) {
    return malformed(
      "The host must be a host name in lower case, without a dot at its end, and without a port other than the scheme's own.",
    );
  }
  if (raw.serverName !== undefined && raw.serverName.toLowerCase() !== host) {
    return malformed(
      `The connection was made for ${JSON.stringify(raw.serverName)}, and the request is for ${host}.`,
      421,
    );
  }
  if (!TARGET.test(raw.target))
    return malformed(
      "The path must begin with / and hold neither space nor control nor non-ASCII byte.",
    );
  if (/[\\#]/.test(raw.target)) return malformed("The path holds a backslash or a #.");
  const headers = new Map<string, string>();
  for (const [name, value] of raw.headers) {
    if (name === "host") return malformed("The request names its host twice.");
    if (SINGLE.has(name) && headers.has(name)) return malformed(`The header ${name} stands twice.`);
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

/** Headers that decide, and that two readers could read differently when they stand twice. */
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
 * Without the port of the scheme; undefined for what is no host name, and for other ways to write
 * one: the upstream is asked for it as it was sent.
 */
export function canonicalHost(authority: string, scheme: string): string | undefined {
  const match = /^([^:@[\]]+)(?::(\d{1,5}))?$/.exec(authority);
  if (match === null) return undefined;
  const port = match[2];
  if (port !== undefined && Number(port) !== (scheme === "http" ? 80 : 443)) return undefined;
  const name = match[1] as string;
  return HOST.test(name) ? name : undefined;
}
