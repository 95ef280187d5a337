/**
 * The one form in which text that a client chose is stored: in audit records, in log lines and in
 * metric labels. It is printable, has at most {@link LONGEST} characters, and cannot be forged:
 *
 * - Control and format characters, line separators and lone surrogates are written as `\u{<hex>}`.
 * - So is the ellipsis, and a backslash is written twice. An ellipsis in stored text is therefore
 *   ours, whatever the client sent.
 * - Text whose written form has more than 256 characters is cut after at most 256 of them, never
 *   within an escape, and ends with `…sha256:` and the first 32 hexadecimal digits of the SHA-256 of
 *   the whole text in UTF-8.
 *
 * Text that is not cut can be read back without loss. The functions are applied once, where a record
 * is made; to apply them again would escape the escapes.
 */
import { hash } from "node:crypto";

/** Characters of a client's text that are stored. */
export const MAX_CLIENT_TEXT = 256;

/** Entries of a client's list that are stored, unless a caller has a reason for more. */
export const MAX_CLIENT_LIST = 20;

/** Of a list: several lists fit into one record of the audit chain, however they are escaped. */
const MAX_LIST_CHARACTERS = 128 * 1024;

/** 128 bits: two texts with one stored form cannot be found. */
const HASH_DIGITS = 32;

/** Length of the longest stored form. */
export const LONGEST = MAX_CLIENT_TEXT + "…sha256:".length + HASH_DIGITS;

/** Printable ASCII without the backslash: what is stored as it is. */
const PLAIN = /^[\x20-\x5b\x5d-\x7e]*$/;

const ESCAPED = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}…]/u;

export function clientText(text: string): string {
  if (text.length <= MAX_CLIENT_TEXT && PLAIN.test(text)) return text;
  return cutText(text, MAX_CLIENT_TEXT);
}

/** As {@link clientText}; undefined stays undefined. */
export function optionalClientText(text: string | undefined): string | undefined {
  return text === undefined ? undefined : clientText(text);
}

/**
 * A list of clients' texts. Of a list with more than `most` entries, or of more than 128 Ki characters,
 * the first ones are stored, and a last one says how many are missing: `…<count> more, sha256:<hex>`,
 * the hash of the whole list as JSON.
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

/** {@link clientText} with another limit, for text that is ours and may quote a client's. */
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
