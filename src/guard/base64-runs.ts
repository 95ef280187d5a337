/** Finds base64 in a text, in either alphabet, also wrapped in lines (RFC 4648, RFC 2045). */

/** Shorter runs are words, names and identifiers; 24 characters are 18 bytes. */
const MIN_RUN = 24;

const IS_BASE64 = new Uint8Array(128);
for (const character of "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-") {
  IS_BASE64[character.charCodeAt(0)] = 1;
}

const TAB = 0x09;
const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;

/**
 * Yields every run of at least 24 characters of the alphabets, without its padding. A run covers
 * one of every 24 positions, so that prose is skipped at a few characters of each line.
 */
export function* base64Runs(text: string): Generator<string> {
  for (let at = MIN_RUN - 1; at < text.length;) {
    if (!isBase64(text, at)) {
      at += MIN_RUN;
      continue;
    }
    let start = at;
    while (start > 0 && isBase64(text, start - 1)) start -= 1;
    let end = endOfLine(text, at);
    if (end - start >= MIN_RUN) {
      for (let next = afterLineEnd(text, end); isBase64(text, next);) {
        end = endOfLine(text, next);
        next = afterLineEnd(text, end);
      }
      yield text.slice(start, end);
    }
    at = end + MIN_RUN;
  }
}

const isBase64 = (text: string, at: number): boolean => IS_BASE64[text.charCodeAt(at)] === 1;

function endOfLine(text: string, at: number): number {
  let end = at;
  while (isBase64(text, end)) end += 1;
  return end;
}

/**
 * Returns the position after a line end and the next line's indentation; the same if there is none.
 */
function afterLineEnd(text: string, at: number): number {
  let next = at;
  if (text.charCodeAt(next) === CR) next += 1;
  if (text.charCodeAt(next) !== LF) return at;
  do next += 1;
  while (text.charCodeAt(next) === SPACE || text.charCodeAt(next) === TAB);
  return next;
}
