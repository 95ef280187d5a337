/** For tests: a clock that moves when it is told to, and a log that is kept. */
import { pino } from "pino";
import type { Clock } from "./clock.ts";
import type { Logger } from "./log.ts";

/** CapturedLog keeps every line that is logged, parsed. */
export class CapturedLog {
  readonly lines: Record<string, unknown>[] = [];
  readonly log: Logger = pino(
    { level: "trace" },
    { write: (line: string) => this.lines.push(JSON.parse(line) as Record<string, unknown>) },
  );
}

/** Stands still until it is told to go on; timers are called when they are due. */
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

  /** How long until each timer that is set, soonest first. */
  get pending(): readonly number[] {
    return this.#timers.map(({ at }) => at - this.#monotonic).sort((a, b) => a - b);
  }

  advance(ms: number): void {
    const end = this.#monotonic + ms;
    for (let due = this.#due(end); due !== undefined; due = this.#due(end)) due();
    this.#moveTo(end);
  }

  /** As {@link advance}; what each timer started has settled before the next. */
  async advanceAndSettle(ms: number): Promise<void> {
    const end = this.#monotonic + ms;
    for (let due = this.#due(end); due !== undefined; due = this.#due(end)) {
      due();
      await settled();
    }
    this.#moveTo(end);
    await settled();
  }

  /** Somebody sets the wall clock to another time: no timer knows, nor the monotonic clock. */
  set(now: number): void {
    this.#now = now;
  }

  step(ms: number): void {
    this.#now += ms;
  }

  /** The next timer until `end`, taken off, at its time. */
  #due(end: number): (() => void) | undefined {
    const next = this.#timers.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
    if (next === undefined) return undefined;
    this.#timers = this.#timers.filter((timer) => timer !== next);
    this.#moveTo(next.at);
    return next.callback;
  }

  #moveTo(monotonic: number): void {
    // A timer that was due already when it was set moves nothing back.
    const passed = Math.max(0, monotonic - this.#monotonic);
    this.#now += passed;
    this.#monotonic += passed;
  }
}

/** Everything that promises alone can bring about has happened. */
export function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
}
