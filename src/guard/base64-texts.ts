/** Finds the texts that a text contains as base64. */
import { base64Runs } from "./base64-runs.ts";

/** Bytes of a stretch of text at least; shorter ones are found in any bytes. */
const MIN_STRETCH = 16;

const utf8 = new TextDecoder("utf-8", { fatal: true });

/** Length of the parts of a run that is not text as a whole: a step of the generator is short. */
const SECTION_CHARS = 65_536;

/** Length that adjacent parts share: 1 KiB of text. */
const SECTION_OVERLAP_CHARS = 1_368;

/** Control characters that are in no text. */
const BINARY = /[\p{Cc}--[\t-\r]]/v;

/** Size of a character in UTF-8 by its first byte (RFC 3629); 0 for what begins no text. */
const SIZES = new Uint8Array(256);
SIZES.fill(1, 0x20, 0x7f);
SIZES.fill(1, 0x09, 0x0e);
SIZES.fill(2, 0xc2, 0xe0);
SIZES.fill(3, 0xe0, 0xf0);
SIZES.fill(4, 0xf0, 0xf5);

/** `\n`, `\r` and `\/` in a JSON string, and in one inside of another. */
const ESCAPES = /\\{1,4}([nr/])/g;
const UNESCAPED: Readonly<Record<string, string>> = { n: "\n", r: "\r", "/": "/" };

/**
 * Yields the decoded text of every run of base64. What stands next to base64 may be of its alphabet
 * too, such as the word on the next line or the path before it: then the stretches of text in the
 * run are found, wherever in it the base64 begins. A part of a run without any yields an empty
 * text.
 */
export function* base64Texts(text: string): Generator<string> {
  for (const run of base64Runs(text.includes("\\") ? unescaped(text) : text)) {
    const whole = wholeText(Buffer.from(run, "base64url"));
    if (whole !== undefined) {
      yield whole;
      continue;
    }
    const plain = run.includes("\n") ? run.replaceAll(/\s/g, "") : run;
    for (let start = 0; start < plain.length; start += SECTION_CHARS) {
      yield stretchesOf(plain.slice(start, start + SECTION_CHARS + SECTION_OVERLAP_CHARS));
    }
  }
}

/** Returns the stretches of text in a part of a run, separated by newlines. */
function stretchesOf(part: string): string {
  const found: string[] = [];
  for (let shift = 0; shift < 4; shift += 1) {
    for (const stretch of stretches(Buffer.from(part.slice(shift), "base64url"))) {
      found.push(stretch);
    }
  }
  return found.join("\n");
}

const unescaped = (text: string): string =>
  text.replaceAll(ESCAPES, (_, escaped: string) => UNESCAPED[escaped] as string);

function wholeText(bytes: Buffer): string | undefined {
  try {
    const decoded = utf8.decode(bytes);
    return BINARY.test(decoded) ? undefined : decoded;
  } catch {
    return undefined;
  }
}

/** Returns the stretches of bytes that are text in UTF-8. */
function stretches(bytes: Buffer): string[] {
  const found: string[] = [];
  const { length } = bytes;
  let start = 0;
  let at = 0;
  while (at <= length) {
    const size = at === length ? 0 : (SIZES[bytes[at] as number] as number);
    if (size === 1 || (size > 1 && isContinued(bytes, at, size))) {
      at += size;
      continue;
    }
    if (at - start >= MIN_STRETCH) found.push(bytes.toString("utf8", start, at));
    at += 1;
    start = at;
  }
  return found;
}

function isContinued(bytes: Buffer, at: number, size: number): boolean {
  for (let next = at + 1; next < at + size; next += 1) {
    if (((bytes[next] ?? 0) & 0xc0) !== 0x80) return false;
  }
  return true;
}
