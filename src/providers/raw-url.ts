/**
 * Parses paths and queries strictly, as on the wire: text that two servers could interpret
 * differently is refused, so that the policy and the service agree on its meaning.
 */

/** Printable ASCII without the characters that RFC 3986 forbids; `%` must begin an escape. */
const WIRE = /^(?:[!#-$&-;=?-[\]_a-z~]|%[0-9A-Fa-f]{2})*$/;
/**
 * Unreserved characters need no escape: an escaped one could be an attempt to make servers
 * disagree.
 */
const UNRESERVED_ESCAPED = /%(?:2[dDeE]|3[0-9]|4[1-9a-fA-F]|5[0-9aAfF]|6[1-9a-fA-F]|7[0-9aAeE])/;
const CONTROL = /\p{Cc}/u;

/**
 * Decodes escapes once; undefined if one is broken, is not UTF-8 or hides a control character. `+`
 * is a plus.
 */
export function decodeOnce(raw: string): string | undefined {
  const decoded = decodeText(raw);
  return decoded === undefined || CONTROL.test(decoded) ? undefined : decoded;
}

/** Like {@link decodeOnce}, for text that may contain line breaks and similar characters. */
function decodeText(raw: string): string | undefined {
  try {
    return WIRE.test(raw) ? decodeURIComponent(raw) : undefined;
  } catch {
    return undefined;
  }
}

/** Whether a letter, a digit, `-`, `.`, `_` or `~` is escaped. */
export function escapesNeedlessly(raw: string): boolean {
  return UNRESERVED_ESCAPED.test(raw);
}

export interface PathSegments {
  /** Segments, each decoded once. */
  readonly segments: readonly string[];
  readonly trailingSlash: boolean;
}

/**
 * Returns the segments of an API's path. Returns undefined if it contains an empty segment, `.` or
 * `..` (escaped or not), `;`, `\`, a broken or unnecessary escape, or an escaped slash, unless
 * `slashes` allows it inside a segment.
 */
export function pathSegments(
  path: string,
  options: { readonly slashes: boolean },
): PathSegments | undefined {
  if (!path.startsWith("/") || path.includes(";") || path.includes("+") || escapesNeedlessly(path))
    return undefined;
  const trailingSlash = path.length > 1 && path.endsWith("/");
  const raw = path === "/" ? [] : path.slice(1, trailingSlash ? -1 : undefined).split("/");
  const segments: string[] = [];
  for (const part of raw) {
    const segment = decodeOnce(part);
    if (segment === undefined || !isPlain(segment, options.slashes)) return undefined;
    segments.push(segment);
  }
  return { segments, trailingSlash };
}

function isPlain(segment: string, slashes: boolean): boolean {
  // An escaped percent sign would be a further escape for a server that decodes twice.
  if (segment === "" || /[\\;%?#]/.test(segment)) return false;
  if (!slashes && segment.includes("/")) return false;
  return segment.split("/").every((part) => part !== "." && part !== ".." && part !== "");
}

export type Parameters = readonly (readonly [name: string, value: string])[];

/**
 * Returns a query's parameters in order, decoded; undefined if `+`, `;`, an escape or a nameless
 * part makes it ambiguous.
 */
export function parseQuery(query: string): Parameters | undefined {
  return /[+;]/.test(query) ? undefined : parameters(query, decodeOnce);
}

/**
 * Like {@link parseQuery}, for a form in a body, where a plus is a space and values may be any
 * text.
 */
export function parseForm(body: Buffer): Parameters | undefined {
  const text = body.toString("latin1");
  return text.includes(";") ? undefined : parameters(text.replaceAll("+", "%20"), decodeText);
}

function parameters(
  query: string,
  decodeValue: (raw: string) => string | undefined,
): Parameters | undefined {
  if (query === "") return [];
  const found: [string, string][] = [];
  for (const part of query.split("&")) {
    const equals = part.indexOf("=");
    const name = decodeOnce(equals < 0 ? part : part.slice(0, equals));
    const value = decodeValue(equals < 0 ? "" : part.slice(equals + 1));
    if (name === undefined || value === undefined || name === "") return undefined;
    found.push([name, value]);
  }
  return found;
}

/** Returns a name that occurs twice, ignoring case; undefined if there is none. */
export function repeatedName(parameters: Parameters): string | undefined {
  const seen = new Set<string>();
  for (const [name] of parameters) {
    if (seen.has(name.toLowerCase())) return name;
    seen.add(name.toLowerCase());
  }
  return undefined;
}
