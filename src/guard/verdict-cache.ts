/**
 * VerdictCache remembers the scores of texts, because every turn of an agent repeats its history.
 * Its keys are keyed hashes, so that it contains no text and nothing from which one could be
 * guessed. The least recently used verdicts are dropped.
 */
import { createHmac, randomBytes } from "node:crypto";
import type { Scores } from "./protocol.ts";

/** Verdicts of about 800 MiB of text, in about 20 MiB of memory. */
const MAX_VERDICTS = 100_000;

/** Bytes of the hash that are kept: enough that nobody finds two texts with the same one. */
const KEY_BYTES = 16;

export class VerdictCache {
  readonly #secret = randomBytes(32);
  readonly #max: number;
  readonly #verdicts = new Map<string, Scores>();

  constructor(max = MAX_VERDICTS) {
    this.#max = max;
  }

  get size(): number {
    return this.#verdicts.size;
  }

  /** @param classifier id of the classifier, which changes with everything that it depends on */
  keyOf(classifier: string, text: string): string {
    return createHmac("sha256", this.#secret)
      .update(classifier)
      .update("\0")
      .update(text)
      .digest()
      .toString("latin1", 0, KEY_BYTES);
  }

  get(key: string): Scores | undefined {
    const scores = this.#verdicts.get(key);
    if (scores === undefined) return undefined;
    // A Map iterates in the order of insertion: the first key is the least recently used one.
    this.#verdicts.delete(key);
    this.#verdicts.set(key, scores);
    return scores;
  }

  set(key: string, scores: Scores): void {
    this.#verdicts.delete(key);
    if (this.#verdicts.size >= this.#max) {
      const oldest = this.#verdicts.keys().next();
      if (oldest.done !== true) this.#verdicts.delete(oldest.value);
    }
    this.#verdicts.set(key, scores);
  }
}
