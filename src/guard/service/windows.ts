/** Windows of a text's tokens, made while they are wanted. */
import { pieces } from "./pieces.ts";

/**
 * Characters that are tokenised at once, in some milliseconds. The time of the tokenizer grows with
 * the square of the length of a word, which a text without white space is.
 */
const PIECE_CHARS = 1_024;

export interface WindowOptions {
  /** Tokens of a piece of text, without special tokens. */
  readonly tokensOf: (piece: string) => readonly number[];
  /** Tokens of a window, without special tokens. */
  readonly size: number;
  /** Tokens that a window has in common with the previous one. */
  readonly overlap: number;
}

/**
 * Returns windows of `size` tokens, each `size - overlap` tokens after the previous one. The last
 * one ends where the text ends, and is as long as the others unless it is the only one.
 */
export function* windowsOf(
  text: string,
  { tokensOf, size, overlap }: WindowOptions,
): Generator<readonly number[], void, undefined> {
  const source = pieces(text, PIECE_CHARS);
  // Tokens from the start of the previous window on.
  let tokens: number[] = [];
  // Where the next window begins in it, and where the previous one ended.
  let start = 0;
  let end = 0;
  for (;;) {
    while (tokens.length < start + size) {
      const piece = source.next();
      if (piece.done === true) {
        if (tokens.length > end) yield tokens.slice(Math.max(0, tokens.length - size));
        return;
      }
      // Not push(...): there may be more tokens than a call may have arguments.
      for (const token of tokensOf(piece.value)) tokens.push(token);
    }
    tokens = tokens.slice(start);
    yield tokens.slice(0, size);
    start = size - overlap;
    end = size;
  }
}
