/**
 * Cuts texts into the pieces that a classifier is asked about. A text that is hidden from a
 * classifier, but not from a model, is made visible first:
 *
 * - Adjacent texts of one source, such as the parts of a message, are also judged across their
 *   borders.
 * - Text with invisible characters, with characters of Unicode's block of tags, or in compatibility
 *   forms is also judged as a model reads it.
 * - Base64 that contains text in UTF-8 is decoded, once.
 * - A long text is cut into pieces that overlap, so that every pattern up to the overlap's length
 *   is whole in one of them.
 */
import { base64Texts } from "./base64-texts.ts";

/** Length of a piece in UTF-16 code units: some 2,000 tokens. */
export const PIECE_CHARS = 8_192;

/** Length that adjacent pieces share, and that is judged on each side of a border. */
export const OVERLAP_CHARS = 1_024;

/** A text, and whose it is. */
export interface SourcedText {
  readonly text: string;
  /**
   * Adjacent texts of the same source are read as one. Texts of a source `<other>.<anything>`
   * between them do not separate them.
   */
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

/**
 * Yields the pieces of texts: those across borders, then those of each text, the newest last. Some
 * are empty: they stand for a long part of a text without anything to judge, so that no step of the
 * generator takes long.
 */
export function* piecesOf(texts: readonly SourcedText[]): Generator<Piece> {
  for (const run of runsOf(texts)) yield* piecesOfRun(run);
  for (const [of, { text }] of texts.entries()) yield* piecesOfText(text, of);
}

function* piecesOfText(text: string, of: number): Generator<Piece> {
  yield* cut(text, of);
  const visible = visibleForm(text);
  if (visible !== text) yield* cut(visible, of);
  for (const decoded of base64Texts(visible)) yield* cut(visibleForm(decoded), of);
}

function* cut(whole: string, of: number): Generator<Piece> {
  for (let start = 0; start === 0 || start + OVERLAP_CHARS < whole.length;) {
    yield { text: whole.slice(start, start + PIECE_CHARS), of, whole, start };
    start += PIECE_CHARS - OVERLAP_CHARS;
  }
}

/** A text of a run, and its index. */
interface Part {
  readonly of: number;
  readonly text: string;
}

/** Returns the runs of at least two texts of one source. */
function runsOf(texts: readonly SourcedText[]): readonly (readonly Part[])[] {
  const runs: Part[][] = [];
  /** Runs that may go on, by source. */
  const open = new Map<string, Part[]>();
  for (const [of, { text, source }] of texts.entries()) {
    for (const other of open.keys()) {
      if (other !== source && !source.startsWith(`${other}.`)) open.delete(other);
    }
    const run = open.get(source);
    if (run === undefined) open.set(source, [{ of, text }]);
    else if (run.push({ of, text }) === 2) runs.push(run);
  }
  return runs;
}

/** Yields what surrounds the borders of a run, also as a model reads it. */
function* piecesOfRun(run: readonly Part[]): Generator<Piece> {
  const visible = run.map(({ of, text }) => ({ of, text: visibleForm(text) }));
  const isVisible = visible.every(({ text }, index) => text === run[index]?.text);
  for (const parts of isVisible ? [run] : [run, visible]) {
    yield* borderPieces(parts, "");
    // Vendors put a separator between parts, or none.
    if (!isSpaced(parts)) yield* borderPieces(parts, " ");
  }
}

/** Returns whether every border has white space on one of its sides. */
const isSpaced = (parts: readonly Part[]): boolean =>
  parts.every(
    ({ text }, index) =>
      index === 0 || /^\s/.test(text) || /\s$/.test(parts[index - 1]?.text.slice(-1) ?? ""),
  );

/** Yields what surrounds borders; those that are close to each other together. */
function* borderPieces([first, ...others]: readonly Part[], separator: string): Generator<Piece> {
  if (first === undefined) return;
  let around = [first.text.slice(-OVERLAP_CHARS)];
  let firstBorder: number | undefined;
  for (const { of, text } of others) {
    firstBorder ??= of;
    const isShort = text.length <= 2 * OVERLAP_CHARS;
    around.push(isShort ? text : text.slice(0, OVERLAP_CHARS));
    if (isShort) continue;
    yield* piecesOfText(around.join(separator), firstBorder);
    around = [text.slice(-OVERLAP_CHARS)];
    firstBorder = undefined;
  }
  if (firstBorder !== undefined) yield* piecesOfText(around.join(separator), firstBorder);
}

const PLAIN = /^[\t\n\r\x20-\x7e]*$/;

/** Control and format characters, what a font does not show, and lone surrogates. */
const INVISIBLE = /[[\p{Cc}--[\t\n\r]]\p{Cf}\p{Cs}\p{Default_Ignorable_Code_Point}]/gv;

/** Unicode's block of tags: a copy of ASCII that is not visible. */
const TAGS = /[\u{e0020}-\u{e007e}]/gu;

/** Ligatures of whole phrases, which NFKC writes out: 18 characters for one. */
const PHRASES = /[\ufdfa\ufdfb]/g;

/**
 * Text is normalised in parts of at most 64 characters, because the time that ICU takes to order
 * combining marks is quadratic in their number: 80,000 of them take seconds.
 */
const NOT_ASCII = /[^]\P{ASCII}{1,63}/gu;

/** Returns the text as a model reads it: no invisible characters, no compatibility forms. */
export function visibleForm(text: string): string {
  if (PLAIN.test(text)) return text;
  return text
    .replaceAll(TAGS, (tag) => String.fromCodePoint((tag.codePointAt(0) as number) - 0xe0000))
    .replaceAll(INVISIBLE, "")
    .replaceAll(PHRASES, " ")
    .replaceAll(NOT_ASCII, (part) => part.normalize("NFKC"));
}
