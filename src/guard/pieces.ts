/**
 * Cuts texts into the pieces that a classifier is asked about. A text that is hidden from a
 * classifier, but not from a model, is made visible first:
 *
 * - Adjacent texts of one source, such as the parts of a message, are also judged across their
 *   borders.
 * - Text with invisible characters, with characters of Unicode's block of tags, or in compatibility
 *   forms is also judged as a model reads it.
 * - Base64 that contains text is decoded, once.
 * - A long text is cut into pieces that overlap, so that every pattern up to the overlap's length
 *   is whole in one of them.
 */
import { base64Texts } from "./base64-texts.ts";

/** Length of a piece in UTF-16 code units: some 2,000 tokens. */
export const PIECE_CHARS = 8_192;

/** Length that adjacent pieces share, and that is judged on each side of a border. */
export const OVERLAP_CHARS = 1_024;

/** A text, and whose it is. Adjacent ones of the same source are read as one. */
export interface SourcedText {
  readonly text: string;
  readonly source: string;
}

export interface Piece {
  readonly text: string;
  /** Index of the text that it comes from; of a border, of the text behind it. */
  readonly of: number;
  /** The whole text that it was cut from, at `start`. */
  readonly whole: string;
  readonly start: number;
}

/** Yields the pieces of texts. */
export function* piecesOf(texts: readonly SourcedText[]): Generator<Piece> {
  for (const [of, { text }] of texts.entries()) yield* piecesOfText(text, of);
  for (const run of runsOf(texts)) {
    yield* borderPieces(texts, run, "");
    // Vendors put a separator between parts, or none.
    if (run.some((of) => !isSpaced(texts, of))) yield* borderPieces(texts, run, " ");
  }
}

function* piecesOfText(text: string, of: number): Generator<Piece> {
  yield* cut(text, of);
  const plain = visibleForm(text);
  if (plain !== text) yield* cut(plain, of);
  for (const decoded of base64Texts(plain)) yield* cut(visibleForm(decoded), of);
}

function* cut(whole: string, of: number): Generator<Piece> {
  for (let start = 0; start === 0 || start + OVERLAP_CHARS < whole.length;) {
    yield { text: whole.slice(start, start + PIECE_CHARS), of, whole, start };
    start += PIECE_CHARS - OVERLAP_CHARS;
  }
}

/** Returns the indices of the texts behind a border, by run of adjacent texts of one source. */
function runsOf(texts: readonly SourcedText[]): readonly (readonly number[])[] {
  const runs: number[][] = [];
  for (let index = 1; index < texts.length; index += 1) {
    if (texts[index]?.source !== texts[index - 1]?.source) continue;
    const last = runs.at(-1);
    if (last?.at(-1) === index - 1) last.push(index);
    else runs.push([index]);
  }
  return runs;
}

const isSpaced = (texts: readonly SourcedText[], of: number): boolean =>
  /\s$/.test(texts[of - 1]?.text.slice(-1) ?? "") || /^\s/.test(texts[of]?.text.slice(0, 1) ?? "");

/** Yields what surrounds the borders of a run; borders that are close to each other together. */
function* borderPieces(
  texts: readonly SourcedText[],
  run: readonly number[],
  separator: string,
): Generator<Piece> {
  const textAt = (index: number): string => texts[index]?.text ?? "";
  let of = run[0] ?? 0;
  let around = [textAt(of - 1).slice(-OVERLAP_CHARS)];
  for (const index of run) {
    const text = textAt(index);
    if (text.length <= 2 * OVERLAP_CHARS) {
      around.push(text);
      continue;
    }
    around.push(text.slice(0, OVERLAP_CHARS));
    yield* piecesOfText(around.join(separator), of);
    around = [text.slice(-OVERLAP_CHARS)];
    of = index + 1;
  }
  // Without a border behind it, the end of the last text is no news.
  if (around.length > 1) yield* piecesOfText(around.join(separator), of);
}

const ASCII = /^[\x00-\x7f]*$/;

/** Format characters, which are not visible, and selectors of variants of a character. */
const INVISIBLE =
  /[\p{Cf}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\u{e0100}-\u{e01ef}]/gu;

/** Unicode's block of tags: a copy of ASCII that is not visible. */
const TAGS = /[\u{e0020}-\u{e007e}]/gu;

/** Returns the text as a model reads it: no invisible characters, no compatibility forms. */
export function visibleForm(text: string): string {
  if (ASCII.test(text)) return text;
  return text
    .replaceAll(TAGS, (tag) => String.fromCodePoint((tag.codePointAt(0) as number) - 0xe0000))
    .replaceAll(INVISIBLE, "")
    .normalize("NFKC");
}
