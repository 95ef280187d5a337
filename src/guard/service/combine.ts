/** Combines the scores of a text's parts. */
import type { Scores } from "../protocol.ts";

const attackOf = ({ injection, jailbreak }: Scores): number => Math.max(injection, jailbreak);

/**
 * Returns the scores of a text from those of two of its parts: the maximum of each attack, and
 * `benign` of the part with the higher score of an attack.
 */
export function combine(one: Scores | undefined, other: Scores): Scores {
  if (one === undefined) return other;
  return {
    benign: (attackOf(other) > attackOf(one) ? other : one).benign,
    injection: Math.max(one.injection, other.injection),
    jailbreak: Math.max(one.jailbreak, other.jailbreak),
  };
}

/** Scores of a text without a token. */
export const NOTHING: Scores = { benign: 1, injection: 0, jailbreak: 0 };
