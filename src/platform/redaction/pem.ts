/** Finds keys and certificates in PEM (RFC 7468). */
import type { Span } from "./span.ts";

const BEGIN = /-----BEGIN [A-Z0-9 ]{2,40}-----/g;
const END = "-----END ";
const DASHES = "-----";

/** Lines of base64, also with escaped line ends. */
const LINES = /(?:(?:\r?\n|(?:\\r)?\\n)[A-Za-z0-9+/=]*)*/y;

/** Yields the blocks of a text; one without its end takes its lines. */
export function* pemIn(text: string): Generator<Span> {
  const lastEnd = endOfLast(text);
  let at = 0;
  for (const { 0: begin, index: start } of text.matchAll(BEGIN)) {
    if (start < at) continue;
    const body = start + begin.length;
    at = body <= lastEnd ? endOfBlock(text, body) : endOfLines(text, body);
    yield { start, end: at, kind: "pem" };
  }
}

/** Returns the last place from which a whole end follows; -1 if there is none. */
function endOfLast(text: string): number {
  const last = text.lastIndexOf(END);
  if (last < 0 || text.includes(DASHES, last + END.length)) return last;
  return text.lastIndexOf(END, last - 1);
}

function endOfBlock(text: string, from: number): number {
  return text.indexOf(DASHES, text.indexOf(END, from) + END.length) + DASHES.length;
}

function endOfLines(text: string, from: number): number {
  LINES.lastIndex = from;
  return from + (LINES.exec(text)?.[0].length ?? 0);
}
