/**
 * The bounded form in which client-supplied text is stored in audit records, log lines and metric
 * labels. It is printable, has at most {@link LONGEST} characters, and cannot be forged:
 *
 * - Control and format characters, line separators and lone surrogates are written as `\u{<hex>}`.
 * - So is the ellipsis, and a backslash is written twice. An ellipsis in stored text therefore
 *   always comes from us, whatever the client sent.
 * - Text whose written form has more than 256 characters is truncated to at most 256 of them, never
 *   within an escape, and ends with `…sha256:` and the first 32 hexadecimal digits of the SHA-256
 *   of
 *   the whole text in UTF-8.
 *
 * Untruncated text can be decoded without loss. Apply the functions once, when a record is created;
 * a second application would escape the escapes.
 */
import { hash } from "node:crypto";

/** Maximum number of stored characters of a client's text. */
export const MAX_CLIENT_TEXT = 256;

/** Default maximum number of stored entries of a client's list. */
export const MAX_CLIENT_LIST = 20;

/** Bound of one list, so that several lists fit into one audit record, however they are escaped. */
const MAX_LIST_CHARACTERS = 128 * 1024;

/** 128 bits make it infeasible to find two texts with the same stored form. */
const HASH_DIGITS = 32;

/** Length of the longest stored form. */
export const LONGEST = MAX_CLIENT_TEXT + "…sha256:".length + HASH_DIGITS;

/** Printable ASCII without the backslash, which is stored unchanged. */
const PLAIN = /^[\x20-\x5b\x5d-\x7e]*$/;

const ESCAPED = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\u2026]/u;

export function clientText(text: string): string {
  if (text.length <= MAX_CLIENT_TEXT && PLAIN.test(text)) return text;
  return cutText(text, MAX_CLIENT_TEXT);
}

/** Like {@link clientText}, but undefined stays undefined. */
export function optionalClientText(text: string | undefined): string | undefined {
  return text === undefined ? undefined : clientText(text);
}

/**
 * Stores a list of clients' texts. If a list has more than `most` entries, or more than 128 Ki
 * characters, the first entries are stored, followed by one that states the number of omitted
 * entries: `…<count> more, sha256:<hex>`, with the hash of the whole list as JSON.
 */
export function clientTexts(
  values: readonly string[],
  most: number = MAX_CLIENT_LIST,
): readonly string[] {
  const stored: string[] = [];
  let characters = 0;
  for (const value of values.slice(0, most)) {
    const text = clientText(value);
    characters += text.length;
    if (characters > MAX_LIST_CHARACTERS) break;
    stored.push(text);
  }
  const missing = values.length - stored.length;
  if (missing === 0) return stored;
  return [...stored, `…${missing} more, sha256:${digest(JSON.stringify(values))}`];
}

/** Like {@link clientText}, with another limit, for our own text that may quote a client's. */
export function cutText(text: string, limit: number): string {
  let written = "";
  for (const character of text) {
    const next = escape(character);
    if (written.length + next.length > limit) return `${written}…sha256:${digest(text)}`;
    written += next;
  }
  return written;
}

function escape(character: string): string {
  if (character === "\\") return "\\\\";
  return ESCAPED.test(character)
    ? `\\u{${(character.codePointAt(0) as number).toString(16)}}`
    : character;
}

function digest(text: string): string {
  return hash("sha256", text, "hex").slice(0, HASH_DIGITS);
}
