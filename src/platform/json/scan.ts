/**
 * A strict scanner of JSON texts (RFC 8259) that builds no values. It finds the members of the
 * outermost object, and refuses text that parsers interpret differently or that is expensive to
 * parse: duplicate keys, excessive nesting, too many values.
 *
 * One pass, linear in the length, no recursion. Long strings are skipped by a native search, so
 * that the scan of a prompt costs less than `JSON.parse` and allocates nothing. A text that passes
 * is valid JSON, except that strings may contain control characters: no parser treats one as the
 * end of a string, and `JSON.parse` refuses them when a value is read.
 */
import { isUtf8 } from "node:buffer";

export interface JsonLimits {
  /** Maximum nesting of objects and arrays, the outermost included. */
  readonly depth: number;
  /** Maximum number of keys and values in the whole text. */
  readonly values: number;
  /** Maximum number of members of the outermost object. */
  readonly members: number;
}

/**
 * Nesting: tool schemas reach some 30 levels, and parsers of vendors stop at 100 or more. Values:
 * more than the 300,000 token numbers that an embeddings request may hold; `JSON.parse` takes some
 * 10 ms for that many.
 */
export const JSON_LIMITS: JsonLimits = { depth: 128, values: 400_000, members: 256 };

export interface JsonMember {
  /** Key with its escapes decoded. */
  readonly key: string;
  /** Offset of the value's first byte. */
  readonly valueStart: number;
  /** Offset after the value's last byte. */
  readonly valueEnd: number;
}

export interface JsonScan {
  /** The members of the outermost object, in order; undefined if the text is not an object. */
  readonly members: readonly JsonMember[] | undefined;
  /** All keys that are written with escapes, in order. */
  readonly escapedKeys: readonly EscapedKey[];
  readonly size: JsonSize;
}

/** Amount of text in a JSON text. */
export interface JsonSize {
  /** Bytes of all strings and keys in UTF-8, escapes decoded, and 4 for each other scalar. */
  readonly text: number;
  /** Values of {@link FILE_KEYS} that are base64; they do not count as text. */
  readonly files: number;
}

export interface EscapedKey {
  /** Offset of the opening quote. */
  readonly start: number;
  /** Offset after the closing quote. */
  readonly end: number;
  /** Key with its escapes decoded. */
  readonly key: string;
}

/**
 * Error for a text that is not valid JSON or that is refused. The message is for clients and names
 * the offset.
 */
export class JsonError extends Error {
  /** @param offset in bytes; undefined if unknown */
  constructor(problem: string, offset?: number) {
    super(offset === undefined ? problem : `${problem} at byte ${offset}`);
    this.name = "JsonError";
  }
}

const QUOTE = 0x22;
const PLUS = 0x2b;
const COMMA = 0x2c;
const MINUS = 0x2d;
const DOT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;
const COLON = 0x3a;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** @throws JsonError */
export function scanJson(bytes: Buffer, limits: JsonLimits = JSON_LIMITS): JsonScan {
  if (!isUtf8(bytes)) throw new JsonError("text that is not UTF-8", 0);
  const outer = skipSpace(bytes, 0);
  const members: JsonMember[] = [];
  const isObject = bytes[outer] === OPEN_BRACE;
  const strings = new StringScanner(bytes);
  const scanner = new ValueScanner(bytes, limits, strings);
  const end = isObject
    ? scanOutermost(bytes, outer, limits, { scanner, strings }, members)
    : scanner.skip(outer, 0);
  const behind = skipSpace(bytes, end);
  if (behind < bytes.length) throw unexpected(bytes, behind);
  return {
    members: isObject ? members : undefined,
    escapedKeys: scanner.escapedKeys,
    size: { text: strings.text + scanner.scalars * SCALAR_BYTES, files: scanner.files },
  };
}

/** Offsets of a value: of its first byte, and after its last. */
export interface JsonSpan {
  readonly start: number;
  readonly end: number;
}

/**
 * Finds the elements of the outermost array, as strictly as {@link scanJson} does members.
 *
 * @returns undefined if the text is not an array
 * @throws JsonError
 */
export function scanJsonElements(
  bytes: Buffer,
  limits: JsonLimits = JSON_LIMITS,
): readonly JsonSpan[] | undefined {
  if (!isUtf8(bytes)) throw new JsonError("text that is not UTF-8", 0);
  let at = skipSpace(bytes, 0);
  if (bytes[at] !== OPEN_BRACKET) return undefined;
  const scanner = new ValueScanner(bytes, limits, new StringScanner(bytes));
  const elements: JsonSpan[] = [];
  at = skipSpace(bytes, at + 1);
  if (bytes[at] === CLOSE_BRACKET) at += 1;
  else {
    for (;;) {
      const end = scanner.skip(at, 1);
      elements.push({ start: at, end });
      at = skipSpace(bytes, end);
      if (bytes[at] === CLOSE_BRACKET) break;
      if (bytes[at] !== COMMA) throw unexpected(bytes, at);
      at = skipSpace(bytes, at + 1);
    }
    at += 1;
  }
  const behind = skipSpace(bytes, at);
  if (behind < bytes.length) throw unexpected(bytes, behind);
  return elements;
}

/** Scans the outermost object and records its members. @returns the offset after it */
function scanOutermost(
  bytes: Buffer,
  start: number,
  limits: JsonLimits,
  { scanner, strings }: { readonly scanner: ValueScanner; readonly strings: StringScanner },
  members: JsonMember[],
): number {
  const keys = new Set<string>();
  let at = skipSpace(bytes, start + 1);
  if (bytes[at] === CLOSE_BRACE) return at + 1;
  for (;;) {
    if (members.length === limits.members) {
      throw new JsonError(`an object of more than ${limits.members} members`, at);
    }
    const keyEnd = endOfKey(bytes, at, strings);
    const key = outerKey(bytes, at, keyEnd, keys);
    scanner.noteEscapes(at, keyEnd, key);
    const valueStart = behindColon(bytes, keyEnd);
    const valueEnd = scanner.skip(valueStart, 1);
    members.push({ key, valueStart, valueEnd });
    at = skipSpace(bytes, valueEnd);
    if (bytes[at] === CLOSE_BRACE) return at + 1;
    if (bytes[at] !== COMMA) throw unexpected(bytes, at);
    at = skipSpace(bytes, at + 1);
  }
}

/**
 * Reads a key of the outermost object. Keys are compared as the most tolerant upstream compares
 * them: Go's encoding/json ignores case.
 */
function outerKey(bytes: Buffer, start: number, end: number, keys: Set<string>): string {
  if (end - start > MAX_OUTER_KEY) {
    throw new JsonError(`a key of more than ${MAX_OUTER_KEY} bytes`, start);
  }
  const key = decodeKey(bytes, start, end);
  const folded = key.normalize("NFKC").toLowerCase();
  if (keys.has(folded)) throw keyTwice(key, start);
  keys.add(folded);
  if (key === "__proto__") throw prototypeKey(start);
  return key;
}

/** Longest key of the outermost object, bytes with quotes. */
const MAX_OUTER_KEY = 256;

/**
 * ValueScanner skips values, and uses its own stack for nested ones. The keys of all open objects
 * are in two lists, one for their hashes and one for their positions; an object's own keys begin at
 * its base.
 */
class ValueScanner {
  readonly escapedKeys: EscapedKey[] = [];
  readonly #bytes: Buffer;
  readonly #limits: JsonLimits;
  readonly #strings: StringScanner;
  /** Numbers, booleans and nulls. */
  scalars = 0;
  files = 0;
  /** Offset after the last key. */
  #keyEnd = 0;
  #values = 0;
  readonly #hashes: number[] = [];
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];
  /** For each depth: index of the object's first key in the lists; {@link ARRAY} for an array. */
  readonly #bases: number[] = [];
  /** For each depth: keys of an object that has too many for the lists. */
  readonly #sets: (Set<string> | undefined)[] = [];

  constructor(bytes: Buffer, limits: JsonLimits, strings: StringScanner) {
    this.#bytes = bytes;
    this.#limits = limits;
    this.#strings = strings;
  }

  /**
   * @param start of the value's first byte
   * @param depth number of open objects and arrays around it
   * @returns the offset after the value
   */
  skip(start: number, depth: number): number {
    const bytes = this.#bytes;
    const { values: maxValues, depth: maxDepth } = this.#limits;
    const bases = this.#bases;
    let values = this.#values;
    let at = start;
    let level = depth;
    /** Offset of the key of the next value; {@link NO_KEY} in an array. */
    let key = NO_KEY;
    for (;;) {
      // Positioned at the first byte of a value.
      values += 1;
      if (values > maxValues) throw tooMany(maxValues, at);
      const byte = bytes[at];
      if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
        if (level === maxDepth) throw new JsonError(`nesting of more than ${maxDepth} levels`, at);
        at = skipSpace(bytes, at + 1);
        if (bytes[at] === (byte === OPEN_BRACE ? CLOSE_BRACE : CLOSE_BRACKET)) {
          at += 1;
        } else {
          bases[level] = byte === OPEN_BRACE ? this.#hashes.length : ARRAY;
          level += 1;
          key = NO_KEY;
          if (byte === OPEN_BRACE) {
            key = at;
            at = this.#key(at, level - 1);
            values += 1;
          }
          continue;
        }
      } else if (byte === QUOTE) {
        const end = this.#strings.skip(at);
        if (key !== NO_KEY && end - at > SHORTEST_FILE) this.#noteFile(key, at);
        at = end;
      } else {
        this.scalars += 1;
        at = skipScalar(bytes, at, byte);
      }
      // Positioned after a value: the containers around it end here or continue.
      for (;;) {
        if (level === depth) {
          this.#values = values;
          return at;
        }
        at = skipSpace(bytes, at);
        const base = bases[level - 1] as number;
        const next = bytes[at];
        if (next === COMMA) {
          at = skipSpace(bytes, at + 1);
          key = NO_KEY;
          if (base !== ARRAY) {
            key = at;
            at = this.#key(at, level - 1);
            values += 1;
          }
          break;
        }
        if (next !== (base === ARRAY ? CLOSE_BRACKET : CLOSE_BRACE)) throw unexpected(bytes, at);
        at += 1;
        level -= 1;
        if (base !== ARRAY) this.#forget(base, level);
      }
    }
  }

  /** Reads a key and its colon. @returns the offset of the value */
  #key(start: number, level: number): number {
    const bytes = this.#bytes;
    if (bytes[start] !== QUOTE) throw unexpected(bytes, start);
    // Short keys are hashed during the search for their end.
    let hash = 0;
    let at = start + 1;
    for (const near = Math.min(at + SHORT_KEY, bytes.length); at < near; at += 1) {
      const byte = bytes[at] as number;
      if (byte === QUOTE || byte === BACKSLASH) break;
      hash = (Math.imul(hash, 31) + byte) | 0;
    }
    const plain = bytes[at] === QUOTE;
    if (plain) this.#strings.text += at - start - 1;
    const end = plain ? at + 1 : endOfKey(bytes, start, this.#strings);
    this.#keyEnd = end;
    if (plain && hash !== PROTO_HASH && this.#sets[level] === undefined) {
      this.#note(hash, start, end, level);
    } else {
      const key = decodeKey(bytes, start, end);
      this.noteEscapes(start, end, key);
      this.#noteDecoded(key, start, level);
    }
    return behindColon(bytes, end);
  }

  /** @param start of the opening quote of the string that was skipped last */
  #noteFile(keyStart: number, start: number): void {
    const key = decodeKey(this.#bytes, keyStart, this.#keyEnd);
    if (!FILE_KEYS.has(key) || !isFile(this.#bytes, start + 1)) return;
    this.files += 1;
    this.#strings.text -= this.#strings.length;
  }

  /** Notes a key that is written with escapes: its quotes and its own bytes are shorter. */
  noteEscapes(start: number, end: number, key: string): void {
    if (Buffer.byteLength(key) === end - start - 2) return;
    if (needsEscape(key)) throw new JsonError("a key that begins with an escape", start);
    this.escapedKeys.push({ start, end, key });
  }

  #note(hash: number, start: number, end: number, level: number): void {
    const hashes = this.#hashes;
    const base = this.#bases[level] as number;
    for (let index = base; index < hashes.length; index += 1) {
      if (hashes[index] === hash && this.#isSame(index, start, end)) {
        throw keyTwice(decodeKey(this.#bytes, start, end), start);
      }
    }
    hashes.push(hash);
    this.#starts.push(start);
    this.#ends.push(end);
    if (hashes.length - base >= LINEAR_KEYS) this.#toSet(level);
  }

  #isSame(index: number, start: number, end: number): boolean {
    const from = this.#starts[index] as number;
    return this.#bytes.compare(this.#bytes, start, end, from, this.#ends[index]) === 0;
  }

  #noteDecoded(key: string, start: number, level: number): void {
    if (key === "__proto__") throw prototypeKey(start);
    const keys = this.#sets[level] ?? this.#toSet(level);
    if (keys.has(key)) throw keyTwice(key, start);
    keys.add(key);
  }

  /** Comparing each key with all others is cheaper only for few keys. */
  #toSet(level: number): Set<string> {
    const keys = new Set<string>();
    for (let index = this.#bases[level] as number; index < this.#hashes.length; index += 1) {
      const start = this.#starts[index] as number;
      keys.add(decodeKey(this.#bytes, start, this.#ends[index] as number));
    }
    this.#sets[level] = keys;
    return keys;
  }

  /** Forgets the object's keys when the object ends. */
  #forget(base: number, level: number): void {
    this.#hashes.length = base;
    this.#starts.length = base;
    this.#ends.length = base;
    this.#sets[level] = undefined;
  }
}

const ARRAY = -1;
const NO_KEY = -1;

/**
 * Keys under which vendors' APIs accept files and signatures in base64. Text under any other key
 * counts as text, whatever its form: a prompt must not count as a file.
 */
export const FILE_KEYS: ReadonlySet<string> = new Set([
  "url",
  "data",
  "image_url",
  "file_data",
  "signature",
  "thoughtSignature",
  "thought_signature",
  "encrypted_content",
]);

/** Number of keys above which a set is cheaper than pairwise comparison. */
const LINEAR_KEYS = 16;

/** Maximum length in bytes of a key that is hashed directly. */
const SHORT_KEY = 64;

/** Hash of `__proto__`, which is refused: assigned to an object, it would change its prototype. */
const PROTO_HASH = Buffer.from("__proto__").reduce(
  (hash, byte) => (Math.imul(hash, 31) + byte) | 0,
  0,
);

/** Returns whether a key's first character needs an escape: see {@link parseJson}. */
function needsEscape(key: string): boolean {
  const first = key.charCodeAt(0);
  if (first < 0x20 || first === QUOTE || first === BACKSLASH) return true;
  return first >= 0xd800 && first <= 0xdfff && !key.slice(0, 2).isWellFormed();
}

/** @param start of the opening quote @returns the offset after the closing one */
function endOfKey(bytes: Buffer, start: number, strings: StringScanner): number {
  if (bytes[start] !== QUOTE) throw unexpected(bytes, start);
  return strings.skip(start);
}

/** @returns the offset of the value whose key ends at `keyEnd` */
function behindColon(bytes: Buffer, keyEnd: number): number {
  const colon = skipSpace(bytes, keyEnd);
  if (bytes[colon] !== COLON) throw unexpected(bytes, colon);
  return skipSpace(bytes, colon + 1);
}

function decodeKey(bytes: Buffer, start: number, end: number): string {
  const text = bytes.toString("utf8", start, end);
  if (!text.includes("\\")) return text.slice(1, -1);
  try {
    return JSON.parse(text) as string;
  } catch {
    throw new JsonError("a control character in a key", start);
  }
}

function skipScalar(bytes: Buffer, at: number, first: number | undefined): number {
  switch (first) {
    case 0x74:
      return skipWord(bytes, at, "true");
    case 0x66:
      return skipWord(bytes, at, "false");
    case 0x6e:
      return skipWord(bytes, at, "null");
    default:
      return skipNumber(bytes, at);
  }
}

function skipWord(bytes: Buffer, start: number, word: string): number {
  for (let index = 0; index < word.length; index += 1) {
    if (bytes[start + index] !== word.charCodeAt(index)) throw unexpected(bytes, start + index);
  }
  return start + word.length;
}

/** RFC 8259 section 6. */
function skipNumber(bytes: Buffer, start: number): number {
  let at = bytes[start] === MINUS ? start + 1 : start;
  at = bytes[at] === ZERO ? at + 1 : skipDigits(bytes, at);
  if (bytes[at] === DOT) at = skipDigits(bytes, at + 1);
  if (bytes[at] === 0x65 || bytes[at] === 0x45) {
    at += 1;
    if (bytes[at] === PLUS || bytes[at] === MINUS) at += 1;
    at = skipDigits(bytes, at);
  }
  return at;
}

function skipDigits(bytes: Buffer, start: number): number {
  let at = start;
  while ((bytes[at] as number) >= ZERO && (bytes[at] as number) <= NINE) at += 1;
  if (at === start) throw unexpected(bytes, at);
  return at;
}

function skipSpace(bytes: Buffer, from: number): number {
  let at = from;
  for (;;) {
    const byte = bytes[at];
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return at;
    at += 1;
  }
}

/**
 * StringScanner skips strings and adds up their sizes. Short strings and runs of escapes are
 * scanned byte by byte, the rest by native searches for the next quote and the next backslash. Each
 * search continues where the last one ended, so that no byte is searched twice.
 */
class StringScanner {
  /** Decoded bytes of all strings and keys so far. */
  text = 0;
  /** Decoded bytes of the last string. */
  length = 0;
  readonly #bytes: Buffer;
  /** Results of the last searches; valid for every offset that is not after them. */
  #quote = -1;
  #backslash = -1;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  /** @param start of the opening quote @returns the offset after the closing one */
  skip(start: number): number {
    const bytes = this.#bytes;
    let saved = 0;
    let at = start + 1;
    for (;;) {
      const near = Math.min(at + SHORT_STRING, bytes.length);
      while (at < near) {
        const byte = bytes[at];
        if (byte === QUOTE) return this.#add(start, at, saved);
        if (byte !== BACKSLASH) {
          at += 1;
        } else if (SHORT_ESCAPES[bytes[at + 1] as number] === 1) {
          at += 2;
          saved += 1;
        } else {
          checkUnicodeEscape(bytes, at);
          at += UNICODE_ESCAPE;
          saved += UNICODE_ESCAPE - DECODED_ESCAPE;
        }
      }
      this.#search(at);
      if (this.#quote < this.#backslash) return this.#add(start, this.#quote, saved);
      if (this.#backslash === bytes.length) {
        throw new JsonError("a string without its closing quote", start);
      }
      at = this.#backslash;
    }
  }

  #search(at: number): void {
    if (this.#quote < at) this.#quote = this.#firstOf(QUOTE, at);
    if (this.#backslash < at) this.#backslash = this.#firstOf(BACKSLASH, at);
  }

  #firstOf(byte: number, at: number): number {
    const found = this.#bytes.indexOf(byte, at);
    return found < 0 ? this.#bytes.length : found;
  }

  /** @param saved difference in bytes between the written and the decoded form */
  #add(start: number, quote: number, saved: number): number {
    this.length = quote - start - 1 - saved;
    this.text += this.length;
    return quote + 1;
  }
}

/** Number of bytes of a string that are scanned one by one before the native search takes over. */
const SHORT_STRING = 64;

/** Maximum number of bytes of a decoded `\uXXXX`. */
const DECODED_ESCAPE = 3;

/** Bytes of text that one scalar counts as. */
const SCALAR_BYTES = 4;

/** By byte: 1 if a backslash followed by it is a complete escape (RFC 8259 section 7). */
const SHORT_ESCAPES = new Uint8Array(256);
for (const byte of Buffer.from('"\\/bfnrt')) SHORT_ESCAPES[byte] = 1;

/** Bytes of `\uXXXX`. */
const UNICODE_ESCAPE = 6;

/** @param at offset of the backslash */
function checkUnicodeEscape(bytes: Buffer, at: number): void {
  const isUnicode =
    bytes[at + 1] === 0x75 &&
    isHexDigit(bytes[at + 2]) &&
    isHexDigit(bytes[at + 3]) &&
    isHexDigit(bytes[at + 4]) &&
    isHexDigit(bytes[at + 5]);
  if (!isUnicode) throw new JsonError("a malformed escape in a string", at);
}

function isHexDigit(byte: number | undefined): boolean {
  if (byte === undefined) return false;
  const letter = byte | 0x20;
  return (byte >= ZERO && byte <= NINE) || (letter >= 0x61 && letter <= 0x66);
}

/** Base64 of fewer characters counts as text, which is not more tokens than a file. */
const SHORTEST_FILE = 1_024;

/** Longest prefix of a data URL (RFC 2397) that is searched for. */
const DATA_URL_PREFIX = 208;

const BASE64 = /^(?:data:[^,]{0,200},)?[A-Za-z0-9+/_-]{1024}/;

/** Returns whether a string begins like base64 or a data URL. Some encoders write `/` as `\/`. */
function isFile(bytes: Buffer, start: number): boolean {
  const head = bytes.toString("latin1", start, start + DATA_URL_PREFIX + 2 * SHORTEST_FILE);
  return BASE64.test(head.replaceAll("\\/", "/"));
}

function tooMany(limit: number, at: number): JsonError {
  return new JsonError(`more than ${limit} keys and values`, at);
}

function keyTwice(key: string, at: number): JsonError {
  const shown = key.length > SHOWN_KEY ? `${key.slice(0, SHOWN_KEY)}…` : key;
  return new JsonError(`the key ${JSON.stringify(shown)} occurs twice`, at);
}

/** Maximum number of characters of a key in an error message. */
const SHOWN_KEY = 64;

function prototypeKey(at: number): JsonError {
  return new JsonError('the key "__proto__" is not allowed', at);
}

function unexpected(bytes: Buffer, at: number): JsonError {
  const byte = bytes[at];
  if (byte === undefined) return new JsonError("an unexpected end of the text", bytes.length);
  if (byte === 0xef && at === 0) return new JsonError("a byte order mark", 0);
  const printable = byte > 0x20 && byte < 0x7f;
  const shown = printable ? `the character ${String.fromCharCode(byte)}` : `the byte ${byte}`;
  return new JsonError(`${shown} is not expected`, at);
}
