/** Time as a parameter: tests pass their own clock. */
export interface TimeSource {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Milliseconds from an arbitrary start; never decreases. */
  monotonic(): number;
}

/**
 * Clock also schedules callbacks. Code that serves requests takes a {@link TimeSource} and
 * schedules through its request's guard (`Exchange.after`), so that an error in a timer fails one
 * request and never the process.
 */
export interface Clock extends TimeSource {
  /** Calls `callback` once after `ms` milliseconds; the returned function cancels it. */
  after(ms: number, callback: () => void): () => void;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after: (ms, callback) => {
    const timer = setTimeout(callback, ms);
    return () => clearTimeout(timer);
  },
};

/** Returns `clock` with callbacks whose errors go to `onDefect` instead of ending the process. */
export function guardedClock(clock: Clock, onDefect: (error: unknown) => void): Clock {
  return {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    after: (ms, callback) =>
      clock.after(ms, () => {
        try {
          callback();
        } catch (error) {
          onDefect(error);
        }
      }),
  };
}
