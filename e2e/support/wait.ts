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
/** Longest wait for a condition; vitest.config.ts sets it for each kind of test. */
const PATIENCE_MS = Number(process.env["SVC_TEST_PATIENCE_MS"] ?? 15_000);

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
  { timeoutMs = PATIENCE_MS, what = "the condition" }: UntilOptions = {},
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

/**
 * The value of `look` once it throws no more: what it asserts holds then.
 * @throws Error after a while, with the last error of `look` as its cause
 */
export async function eventually<T>(look: () => T | Promise<T>): Promise<T> {
  const { value } = await until(async () => ({ value: await look() }), {
    what: "an assertion to hold",
  });
  return value;
}
