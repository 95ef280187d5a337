/** Deadlines and pauses by the clock that is passed in. */
import type { Clock } from "../../platform/clock.ts";

/** Controllers of the requests under way: they end together, or each at its deadline. */
export class AbortGroup {
  readonly #clock: Clock;
  readonly #controllers = new Set<AbortController>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Runs an action with a signal that is aborted by {@link abort}, and after `deadlineMs`.
   * @param deadlineMs undefined: no deadline
   */
  async run<T>(
    deadlineMs: number | undefined,
    action: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const controller = new AbortController();
    this.#controllers.add(controller);
    const cancel =
      deadlineMs === undefined
        ? undefined
        : this.#clock.after(deadlineMs, () => controller.abort(new Error("no answer in time")));
    try {
      return await action(controller.signal);
    } finally {
      cancel?.();
      this.#controllers.delete(controller);
    }
  }

  abort(): void {
    for (const controller of this.#controllers) controller.abort(new Error("the session ended"));
  }
}

/** Waits, unless the signal ends the wait. */
export function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const done = (): void => {
      cancel();
      signal.removeEventListener("abort", done);
      resolve();
    };
    const cancel = clock.after(ms, done);
    signal.addEventListener("abort", done);
  });
}

export interface RetryTimes {
  readonly firstRetry: number;
  readonly longestRetry: number;
}

/**
 * Returns the wait before the next attempt in milliseconds, after `failures` failed ones. Half of
 * it is random, so that those who failed together do not return together.
 * @param asked what the server asked for
 */
export function retryMs(
  times: RetryTimes,
  failures: number,
  asked: number | undefined,
  random: () => number,
): number {
  const doubled = (asked ?? times.firstRetry) * 2 ** Math.min(failures, 10);
  const most = Math.min(times.longestRetry, doubled);
  return most / 2 + (random() * most) / 2;
}
