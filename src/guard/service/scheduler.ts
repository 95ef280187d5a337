/**
 * Shares runs of a model between texts. A run takes windows of several texts, and the texts take
 * turns, so that a text of hundreds of windows does not keep short ones waiting.
 */
import type { Scores } from "../protocol.ts";
import { combine, NOTHING } from "./combine.ts";

/** Tokens of a window, with special tokens. */
export type TokenWindow = readonly number[];

export interface SchedulerOptions {
  /** Returns the scores of each window; one run at a time. */
  readonly run: (batch: readonly TokenWindow[]) => Promise<readonly Scores[]>;
  /** Windows of a run. */
  readonly maxBatch: number;
  /** Tokens of a run with its padding; a single window may have more. */
  readonly maxTokens: number;
  /** Lets texts arrive, and those that are no longer wanted leave, before a run is put together. */
  readonly pause: () => Promise<unknown>;
}

interface Job {
  readonly windows: Iterator<TokenWindow, void, undefined>;
  /** The next window; undefined after the last one. */
  next: TokenWindow | undefined;
  /** Windows of the current run. */
  running: number;
  scores: Scores | undefined;
  readonly resolve: (scores: Scores) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * A run is padded to its longest window. Windows share a run if none is more than this many times
 * as long as another: a short text would otherwise cost as much as a long one.
 */
const LENGTH_RATIO = 2;

export class Scheduler {
  readonly #options: SchedulerOptions;
  /** Texts with windows that are not in a run, in the order of their turns. */
  #waiting: Job[] = [];
  #running = false;

  constructor(options: SchedulerOptions) {
    this.#options = options;
  }

  /**
   * Resolves with the scores of a text.
   * @param windows are taken when they are wanted; the remaining ones are dropped if the signal is
   * aborted, and the promise rejects with its reason
   */
  classify(windows: Iterable<TokenWindow>, signal: AbortSignal): Promise<Scores> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      const abort = (): void => {
        this.#waiting = this.#waiting.filter((other) => other !== job);
        reject(signal.reason as Error);
      };
      const done = (): void => signal.removeEventListener("abort", abort);
      const job: Job = {
        windows: windows[Symbol.iterator]() as Job["windows"],
        next: undefined,
        running: 0,
        scores: undefined,
        resolve: (scores) => (done(), resolve(scores)),
        reject: (error) => (done(), reject(error)),
      };
      signal.addEventListener("abort", abort, { once: true });
      if (!this.#advance(job)) return;
      if (job.next === undefined) return job.resolve(NOTHING);
      this.#waiting.push(job);
      if (!this.#running) void this.#runAll();
    });
  }

  /** Takes the next window of a text; false if that failed. */
  #advance(job: Job): boolean {
    try {
      const { done, value } = job.windows.next();
      job.next = done === true ? undefined : (value ?? undefined);
      return true;
    } catch (error) {
      this.#waiting = this.#waiting.filter((other) => other !== job);
      job.reject(error);
      return false;
    }
  }

  async #runAll(): Promise<void> {
    this.#running = true;
    for (;;) {
      await this.#options.pause();
      const batch = this.#take();
      if (batch.length === 0) break;
      try {
        const scores = await this.#options.run(batch.map(({ window }) => window));
        for (const [index, { job }] of batch.entries()) {
          job.scores = combine(job.scores, scores[index] as Scores);
          job.running -= 1;
        }
        for (const { job } of batch) {
          if (job.running === 0 && job.next === undefined && job.scores !== undefined)
            job.resolve(job.scores);
        }
      } catch (error) {
        const failed = new Set(batch.map(({ job }) => job));
        this.#waiting = this.#waiting.filter((job) => !failed.has(job));
        for (const job of failed) job.reject(error);
      }
    }
    this.#running = false;
  }

  /** Takes the windows of the next run: one of each text in turn, until the run is full. */
  #take(): { readonly job: Job; readonly window: TokenWindow }[] {
    const batch: { readonly job: Job; readonly window: TokenWindow }[] = [];
    let shortest = Number.POSITIVE_INFINITY;
    let longest = 0;
    const { maxBatch, maxTokens } = this.#options;
    const fits = ({ length }: TokenWindow): boolean => {
      if (batch.length === 0) return true;
      const padded = Math.max(longest, length);
      return (
        padded * (batch.length + 1) <= maxTokens &&
        padded <= LENGTH_RATIO * Math.min(shortest, length)
      );
    };
    for (let took = true; took && batch.length < maxBatch;) {
      took = false;
      for (const job of Array.from(this.#waiting)) {
        const window = job.next;
        if (batch.length === maxBatch) break;
        if (window === undefined || !fits(window)) continue;
        took = true;
        batch.push({ job, window });
        shortest = Math.min(shortest, window.length);
        longest = Math.max(longest, window.length);
        job.running += 1;
        // A text whose turn is over goes to the end.
        this.#waiting = this.#waiting.filter((other) => other !== job);
        if (this.#advance(job) && job.next !== undefined) this.#waiting.push(job);
      }
    }
    return batch;
  }
}
