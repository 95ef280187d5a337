/** Test helpers: a clock that tests advance, and a log that is captured. */
import { pino } from "pino";
import type { Clock } from "./clock.ts";
import type { Logger } from "./log.ts";

/** CapturedLog keeps every logged line, parsed. */
export class CapturedLog {
  readonly lines: Record<string, unknown>[] = [];
  readonly log: Logger;

  constructor(level = "trace") {
    this.log = pino(
      { level },
      { write: (line: string) => this.lines.push(JSON.parse(line) as Record<string, unknown>) },
    );
  }
}

/** FakeClock stands still until a test advances it, and calls timers when they are due. */
export class FakeClock implements Clock {
  #now: number;
  #monotonic = 1_000_000;
  #timers: { readonly at: number; readonly callback: () => void }[] = [];

  constructor(now = 1_800_000_000_000) {
    this.#now = now;
  }

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.#monotonic;
  }

  after(ms: number, callback: () => void): () => void {
    const timer = { at: this.#monotonic + ms, callback };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  /** Delays until the pending timers, soonest first. */
  get pending(): readonly number[] {
    return this.#timers.map(({ at }) => at - this.#monotonic).sort((a, b) => a - b);
  }

  advance(ms: number): void {
    const end = this.#monotonic + ms;
    for (let due = this.#due(end); due !== undefined; due = this.#due(end)) due();
    this.#moveTo(end);
  }

  /**
   * Like {@link advance}, but the work started by each timer settles before the next timer runs.
   */
  async advanceAndSettle(ms: number): Promise<void> {
    const end = this.#monotonic + ms;
    for (let due = this.#due(end); due !== undefined; due = this.#due(end)) {
      due();
      await settled();
    }
    this.#moveTo(end);
    await settled();
  }

  /** Sets the wall clock without affecting timers or the monotonic clock. */
  set(now: number): void {
    this.#now = now;
  }

  step(ms: number): void {
    this.#now += ms;
  }

  /** Removes and returns the next timer due until `end`, and moves the clock to its time. */
  #due(end: number): (() => void) | undefined {
    const next = this.#timers.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
    if (next === undefined) return undefined;
    this.#timers = this.#timers.filter((timer) => timer !== next);
    this.#moveTo(next.at);
    return next.callback;
  }

  #moveTo(monotonic: number): void {
    // A timer that was already due when it was set does not move the clock back.
    const passed = Math.max(0, monotonic - this.#monotonic);
    this.#now += passed;
    this.#monotonic += passed;
  }
}

/** Resolves when all pending promise callbacks have run. */
export function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
}
