/** Cuts long texts into pieces, lazily. */

/**
 * Returns the pieces of a text, which follow each other without a gap. They end before white space
 * where there is some, because tokens do not cross it; otherwise at the maximum, but not within a
 * surrogate pair.
 * @param max UTF-16 code units of a piece, at least 2
 */
export function* pieces(text: string, max: number): Generator<string, void, undefined> {
  for (let start = 0; start < text.length;) {
    const end = endOf(text, start, max);
    yield text.slice(start, end);
    start = end;
  }
}

/**
 * Returns pieces of a text of which each begins before the end of the previous one.
 * @param overlap less than half of `max`
 */
export function* overlapping(
  text: string,
  max: number,
  overlap: number,
): Generator<string, void, undefined> {
  let start = 0;
  while (start < text.length) {
    const end = endOf(text, start, max);
    yield text.slice(start, end);
    if (end === text.length) return;
    start = wholeCharacter(text, Math.max(start + 1, end - overlap));
  }
}

function endOf(text: string, start: number, max: number): number {
  const limit = start + max;
  if (limit >= text.length) return text.length;
  // Not in the first half, so that the number of pieces is bounded.
  for (let end = limit; end > start + max / 2; end -= 1) if (isSpace(text, end)) return end;
  return wholeCharacter(text, limit);
}

const isSpace = (text: string, index: number): boolean => /\s/.test(text[index] ?? "");

/** Returns the index itself, or that before it if it is within a surrogate pair. */
function wholeCharacter(text: string, index: number): number {
  const before = text.charCodeAt(index - 1);
  const after = text.charCodeAt(index);
  const within = before >= 0xd800 && before < 0xdc00 && after >= 0xdc00 && after < 0xe000;
  return within ? index - 1 : index;
}
