/**
 * Finds JSON members in stream events without parsing them. Works on the bytes as a latin1 string:
 * for the few hundred bytes of a chunk, one copy and several string searches cost less than as many
 * calls of `Buffer.indexOf`.
 */
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const SPACE = 0x20;

/**
 * Returns `"name"` as written in JSON; inside a string its quotes would be escaped, so it only
 * matches a complete string.
 */
export function memberName(name: string): string {
  return `"${name}"`;
}

function skipSpace(text: string, from: number): number {
  let at = from;
  while (text.charCodeAt(at) === SPACE) at += 1;
  return at;
}

/**
 * Returns the offset of the value of the member whose name ends at `end`; -1 if it is not a
 * member's name.
 */
function valueAt(text: string, end: number): number {
  const colon = skipSpace(text, end);
  return text.charCodeAt(colon) === COLON ? skipSpace(text, colon + 1) : -1;
}

/** Returns whether a member of that name has a value other than null. */
export function hasValue(text: string, name: string): boolean {
  for (let at = text.indexOf(name); at >= 0; at = text.indexOf(name, at + name.length)) {
    const value = valueAt(text, at + name.length);
    if (value >= 0 && text.charCodeAt(value) !== 0x6e) return true;
  }
  return false;
}

/**
 * Returns the bytes of all string values of members of that name: a cheap, slightly high count of
 * characters.
 */
export function stringBytes(text: string, name: string): number {
  let total = 0;
  let at = text.indexOf(name);
  while (at >= 0) {
    let next = at + name.length;
    const value = valueAt(text, next);
    if (value >= 0 && text.charCodeAt(value) === QUOTE) {
      next = closingQuote(text, value + 1);
      total += next - value - 1;
    }
    at = text.indexOf(name, next);
  }
  return total;
}

function closingQuote(text: string, from: number): number {
  let quote = text.indexOf('"', from);
  while (quote >= 0) {
    let backslashes = 0;
    while (
      quote - 1 - backslashes >= from &&
      text.charCodeAt(quote - 1 - backslashes) === BACKSLASH
    )
      backslashes += 1;
    if (backslashes % 2 === 0) return quote;
    quote = text.indexOf('"', quote + 1);
  }
  return text.length;
}
