/**
 * WorkQueue calls a function for each key that is due: never twice at once for the same key, and
 * again if the key became due meanwhile. A key whose work failed is due again after a delay that
 * doubles, or after the time that the server has asked for. Keys are worked on in the order in
 * which they became due, so that one that changes all the time keeps no other waiting.
 */
import type { Clock } from "../platform/clock.ts";

export interface WorkQueueOptions {
  readonly work: (key: string) => Promise<void>;
  readonly onFailure: (key: string, error: unknown, retryMs: number) => void;
  /** Keys that are worked on at once. */
  readonly parallel: number;
  readonly clock: Clock;
  readonly random?: () => number;
}

const FIRST_DELAY_MS = 200;
const MAX_DELAY_MS = 60_000;

export class WorkQueue {
  readonly #options: WorkQueueOptions;
  /** In the order in which they became due. */
  readonly #due = new Set<string>();
  readonly #running = new Set<string>();
  readonly #failures = new Map<string, number>();
  readonly #delayed = new Map<string, () => void>();
  readonly #idle = new Set<() => void>();
  #stopped = true;

  constructor(options: WorkQueueOptions) {
    this.#options = options;
  }

  /** Number of keys that wait, also those with a delay. */
  get depth(): number {
    return this.#due.size + this.#delayed.size;
  }

  add(key: string): void {
    this.#delayed.get(key)?.();
    this.#delayed.delete(key);
    this.#due.add(key);
    this.#next();
  }

  /** Adds a key after a delay, unless it is due before. */
  addAfter(key: string, ms: number): void {
    if (this.#due.has(key) || this.#delayed.has(key)) return;
    this.#delayed.set(
      key,
      this.#options.clock.after(ms, () => this.add(key)),
    );
  }

  start(): void {
    this.#stopped = false;
    this.#next();
  }

  /** Resolves when no work runs. Keys stay due for the next start. */
  async stop(): Promise<void> {
    this.#stopped = true;
    if (this.#running.size > 0) await new Promise<void>((resolve) => this.#idle.add(resolve));
  }

  #next(): void {
    for (const key of this.#due) {
      if (this.#stopped || this.#running.size >= this.#options.parallel) return;
      if (this.#running.has(key)) continue;
      this.#due.delete(key);
      this.#running.add(key);
      void this.#run(key);
    }
  }

  async #run(key: string): Promise<void> {
    try {
      await this.#options.work(key);
      this.#failures.delete(key);
    } catch (error) {
      const failures = this.#failures.get(key) ?? 0;
      this.#failures.set(key, failures + 1);
      const { random = Math.random } = this.#options;
      const growing = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** failures);
      const wished = (error as { readonly retryAfterMs?: number } | undefined)?.retryAfterMs ?? 0;
      const delay = Math.max(wished, growing * (0.75 + random() / 2));
      this.#options.onFailure(key, error, delay);
      this.addAfter(key, delay);
    }
    this.#running.delete(key);
    if (this.#running.size === 0) {
      for (const resolve of this.#idle) resolve();
      this.#idle.clear();
    }
    this.#next();
  }
}
