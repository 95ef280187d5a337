/** Waits for conditions and events, never only for time. */

/** A gate that a test opens; a fake upstream waits at it. */
export class Gate {
  readonly #opened = Promise.withResolvers<void>();
  readonly #reached = Promise.withResolvers<void>();

  /** Resolves when somebody waits at the gate, or has passed it. */
  get reached(): Promise<void> {
    return this.#reached.promise;
  }

  open(): void {
    this.#opened.resolve();
  }

  pass(): Promise<void> {
    this.#reached.resolve();
    return this.#opened.promise;
  }
}

const POLL_MS = 10;

export interface UntilOptions {
  readonly timeoutMs?: number;
  readonly what?: string;
}

/**
 * The first value of `probe` that is neither undefined nor false.
 * @throws Error after `timeoutMs`, with the last error of `probe`
 */
export async function until<T>(
  probe: () => T | undefined | false | Promise<T | undefined | false>,
  { timeoutMs = 15_000, what = "the condition" }: UntilOptions = {},
): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  let last: unknown;
  while (performance.now() < deadline) {
    try {
      const value = await probe();
      if (value !== undefined && value !== false) return value;
      last = undefined;
    } catch (error) {
      last = error;
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  throw new Error(`waited ${timeoutMs} ms for ${what}`, { cause: last });
}
