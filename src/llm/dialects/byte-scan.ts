/** Looks for JSON members in the bytes of stream events without parsing them. */
import { skipSpace } from "./json-members.ts";

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;

/** `"name"` as it stands in JSON; inside a string its quotes would be escaped, so it is only ever a whole string. */
export function memberName(name: string): Buffer {
  return Buffer.from(`"${name}"`);
}

/** Where the value of the member starts whose name was found at `at`; -1 when it is not a member's name. */
function valueAt(bytes: Buffer, at: number, name: Buffer): number {
  const colon = skipSpace(bytes, at + name.length);
  return bytes[colon] === COLON ? skipSpace(bytes, colon + 1) : -1;
}

/** Whether some member of that name has a value other than null. */
export function hasValue(bytes: Buffer, name: Buffer): boolean {
  for (let at = bytes.indexOf(name); at >= 0; at = bytes.indexOf(name, at + name.length)) {
    const value = valueAt(bytes, at, name);
    if (value >= 0 && bytes[value] !== 0x6e) return true;
  }
  return false;
}

/** The bytes of all string values of members of that name: a cheap, slightly high count of characters. */
export function stringBytes(bytes: Buffer, name: Buffer): number {
  let total = 0;
  let at = bytes.indexOf(name);
  while (at >= 0) {
    let next = at + name.length;
    const value = valueAt(bytes, at, name);
    if (value >= 0 && bytes[value] === QUOTE) {
      const end = closingQuote(bytes, value + 1);
      total += end - value - 1;
      next = end;
    }
    at = bytes.indexOf(name, next);
  }
  return total;
}

function closingQuote(bytes: Buffer, from: number): number {
  let quote = bytes.indexOf(QUOTE, from);
  while (quote > from && bytes[quote - 1] === BACKSLASH) {
    let backslashes = 1;
    while (bytes[quote - 1 - backslashes] === BACKSLASH && quote - 1 - backslashes >= from) backslashes += 1;
    if (backslashes % 2 === 0) break;
    quote = bytes.indexOf(QUOTE, quote + 1);
  }
  return quote < 0 ? bytes.length : quote;
}
