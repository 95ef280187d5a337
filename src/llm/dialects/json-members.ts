/**
 * Finds the members of a JSON object in its bytes, so that one value can be replaced and all else stays byte for
 * byte. The bytes must be known to be valid JSON; strings are skipped with `indexOf`, as they may be megabytes.
 */
import { BadRequestError } from "./dialect.ts";

export interface Member {
  readonly key: string;
  readonly valueStart: number;
  /** Behind the value. */
  readonly valueEnd: number;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;

/** Behind the closing quote of the string whose content starts at `from`. */
export function stringEnd(bytes: Buffer, from: number): number {
  let quote = bytes.indexOf(QUOTE, from);
  while (quote >= 0) {
    let backslashes = 0;
    while (quote - 1 - backslashes >= from && bytes[quote - 1 - backslashes] === BACKSLASH)
      backslashes += 1;
    if (backslashes % 2 === 0) return quote + 1;
    quote = bytes.indexOf(QUOTE, quote + 1);
  }
  throw malformed();
}

export function skipSpace(bytes: Buffer, from: number): number {
  let at = from;
  for (;;) {
    const byte = bytes[at];
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return at;
    at += 1;
  }
}

/**
 * The members of the object that is `bytes` from `from`.
 * @throws BadRequestError when a key stands twice: a proxy and an upstream may disagree which one counts. Keys are
 * compared as the most tolerant upstream would (Go's encoding/json folds case), escapes resolved.
 */
export function scanMembers(bytes: Buffer, from = 0): Member[] {
  const members: Member[] = [];
  const seen = new Set<string>();
  let at = skipSpace(bytes, from);
  if (bytes[at] !== OPEN_BRACE) throw malformed();
  at = skipSpace(bytes, at + 1);
  if (bytes[at] === CLOSE_BRACE) return members;
  for (;;) {
    if (bytes[at] !== QUOTE) throw malformed();
    const keyEnd = stringEnd(bytes, at + 1);
    const key = keyText(bytes, at, keyEnd);
    const folded = key.normalize("NFKC").toLowerCase();
    if (seen.has(folded))
      throw new BadRequestError(`the key ${JSON.stringify(key)} stands twice in the body`, key);
    seen.add(folded);
    at = skipSpace(bytes, keyEnd);
    if (bytes[at] !== COLON) throw malformed();
    const valueStart = skipSpace(bytes, at + 1);
    const valueEnd = skipValue(bytes, valueStart);
    members.push({ key, valueStart, valueEnd });
    at = skipSpace(bytes, valueEnd);
    if (bytes[at] === CLOSE_BRACE) return members;
    if (bytes[at] !== COMMA) throw malformed();
    at = skipSpace(bytes, at + 1);
  }
}

function keyText(bytes: Buffer, start: number, end: number): string {
  const escape = bytes.indexOf(BACKSLASH, start);
  if (escape < 0 || escape >= end) return bytes.toString("utf8", start + 1, end - 1);
  try {
    return JSON.parse(bytes.toString("utf8", start, end)) as string;
  } catch {
    throw malformed();
  }
}

function skipValue(bytes: Buffer, start: number): number {
  const first = bytes[start];
  if (first === QUOTE) return stringEnd(bytes, start + 1);
  if (first === OPEN_BRACE || first === OPEN_BRACKET) return skipNested(bytes, start);
  let at = start;
  for (; at < bytes.length; at += 1) {
    const byte = bytes[at] as number;
    if (byte === COMMA || byte === CLOSE_BRACE || byte === CLOSE_BRACKET || byte <= 0x20) break;
  }
  if (at === start) throw malformed();
  return at;
}

function skipNested(bytes: Buffer, start: number): number {
  let depth = 0;
  let at = start;
  while (at < bytes.length) {
    const byte = bytes[at];
    at += 1;
    if (byte === QUOTE) at = stringEnd(bytes, at);
    else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) depth += 1;
    else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
      depth -= 1;
      if (depth === 0) return at;
    }
  }
  throw malformed();
}

function malformed(): BadRequestError {
  return new BadRequestError("the body is not a JSON object");
}
