/**
 * Parses queries and forms strictly, as on the wire: text that two servers could interpret
 * differently is refused, so that the policy and the service agree on its meaning. `url-path.ts`
 * does the same for paths.
 */

/** Printable ASCII without the characters that RFC 3986 forbids; `%` must begin an escape. */
const WIRE = /^(?:[!#-$&-;=?-[\]_a-z~]|%[0-9A-Fa-f]{2})*$/;
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
