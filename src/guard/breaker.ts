/**
 * Breaker keeps a dead classifier from adding its timeout to every call: after several failures in
 * a row nobody waits for it any more. From time to time one call tries it without waiting.
 */
import type { TimeSource } from "../platform/clock.ts";

/** Failures in a row that open it. */
const FAILURES = 3;

/** Time until the first trial, in milliseconds; it doubles with each trial that fails. */
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 30_000;

/** `trial`: the caller should ask, and not wait for the answer. */
export type BreakerState = "closed" | "open" | "trial";

export class Breaker {
  readonly #clock: TimeSource;
  #failures = 0;
  #pauseMs = FIRST_PAUSE_MS;
  #trialAt: number | undefined;
  #onTrial = false;

  constructor(clock: TimeSource) {
    this.#clock = clock;
  }

  get isOpen(): boolean {
    return this.#trialAt !== undefined;
  }

  /** Returns what a call should do; `trial` is returned to one call at a time. */
  enter(): BreakerState {
    if (this.#trialAt === undefined) return "closed";
    const now = this.#clock.monotonic();
    if (now < this.#trialAt) return "open";
    // Should this trial never end, the next one may begin after the longest pause.
    this.#trialAt = now + LONGEST_PAUSE_MS;
    this.#onTrial = true;
    return "trial";
  }

  succeeded(): void {
    this.#failures = 0;
    this.#pauseMs = FIRST_PAUSE_MS;
    this.#trialAt = undefined;
    this.#onTrial = false;
  }

  failed(): void {
    this.#failures += 1;
    // Requests that were under way when it opened do not prolong the pause.
    if (this.#failures < FAILURES || (this.isOpen && !this.#onTrial)) return;
    this.#onTrial = false;
    this.#trialAt = this.#clock.monotonic() + this.#pauseMs;
    this.#pauseMs = Math.min(2 * this.#pauseMs, LONGEST_PAUSE_MS);
  }
}
