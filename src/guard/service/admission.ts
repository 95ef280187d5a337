/**
 * Bounds the requests of the service: some are classified, some wait for their turn, and the others
 * are refused at once. Without a bound, a caller that gives up after its timeout would leave ever
 * more work behind.
 */
export interface AdmissionOptions {
  readonly maxConcurrent: number;
  /** Requests that wait, or whose body is being received. */
  readonly maxQueued: number;
}

export interface Place {
  /** Resolves when it is this request's turn; rejects with the signal's reason if it is aborted. */
  turn(signal: AbortSignal): Promise<void>;
  /** Must be called exactly once, whether the turn has come or not. */
  leave(): void;
}

export class AdmissionQueue {
  readonly #options: AdmissionOptions;
  #places = 0;
  #active = 0;
  #queue: (() => void)[] = [];

  constructor(options: AdmissionOptions) {
    this.#options = options;
  }

  /** Requests that are being classified. */
  get active(): number {
    return this.#active;
  }

  /** Requests that have a place, but not their turn. */
  get queued(): number {
    return this.#places - this.#active;
  }

  /** Returns a place for a request; undefined if there is none. */
  enter(): Place | undefined {
    const { maxConcurrent, maxQueued } = this.#options;
    if (this.#places >= maxConcurrent + maxQueued) return undefined;
    this.#places += 1;
    let active = false;
    return {
      turn: async (signal) => {
        await this.#turn(signal);
        active = true;
      },
      leave: () => {
        this.#places -= 1;
        if (!active) return;
        this.#active -= 1;
        this.#queue.shift()?.();
      },
    };
  }

  async #turn(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#active < this.#options.maxConcurrent) {
      this.#active += 1;
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const start = (): void => {
        signal.removeEventListener("abort", abort);
        // Counted here, not after the await: nobody may take the turn in between.
        this.#active += 1;
        resolve();
      };
      const abort = (): void => {
        this.#queue = this.#queue.filter((other) => other !== start);
        reject(signal.reason as Error);
      };
      signal.addEventListener("abort", abort, { once: true });
      this.#queue.push(start);
    });
  }
}
