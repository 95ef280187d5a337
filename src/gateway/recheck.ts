/** Recheck runs a task at a time of day, which each run may move. */
import type { Clock } from "../platform/clock.ts";

/** Longest time of a timer of Node, milliseconds: about 25 days. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export class Recheck {
  readonly #clock: Clock;
  readonly #task: () => void;
  #cancel: (() => void) | undefined;

  constructor(clock: Clock, task: () => void) {
    this.#clock = clock;
    this.#task = task;
  }

  /**
   * Runs the task at a time instead of the one set before.
   *
   * @param at milliseconds since the epoch; undefined for never
   */
  set(at: number | undefined): void {
    this.#cancel?.();
    this.#cancel = at === undefined ? undefined : this.#wait(at);
  }

  #wait(at: number): () => void {
    const left = Math.max(0, at - this.#clock.now());
    return this.#clock.after(Math.min(left, LONGEST_TIMER_MS), () => {
      // A timer may end early, or the time of day may have been set back.
      if (this.#clock.now() < at) this.set(at);
      else this.#task();
    });
  }
}
