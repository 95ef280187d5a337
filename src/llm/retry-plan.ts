/**
 * Walks one call's attempts: each provider's own, then its fallbacks. Envoy finds out that an
 * attempt failed and starts the next; this says which provider it goes to and how long it waits
 * first.
 */
import type { ProviderPolicy } from "../policy/snapshot.ts";

export interface Target {
  readonly provider: ProviderPolicy;
  /** The upstream's own name of the model. */
  readonly model: string;
}

/** Why an attempt failed. */
export interface Failure {
  /** HTTP status; 0 when no response began (connection error, reset, timeout). */
  readonly status: number;
  readonly retryAfterMs: number | undefined;
  /** Envoy's response flags, e.g. `UF`; empty for an upstream's own answer. */
  readonly flags: string;
}

export type NextAttempt =
  | {
      readonly kind: "attempt";
      readonly target: Target;
      readonly waitMs: number;
      readonly changed: boolean;
    }
  | { readonly kind: "exhausted" };

/** Room for the report of a failed attempt to arrive. */
const REPORT_MARGIN_MS = 1_000;

export class RetryPlan {
  readonly #targets: readonly Target[];
  readonly #random: () => number;
  #index = 0;
  #onThisTarget = 1;
  #total = 1;
  readonly #limit: number;

  /**
   * @param targets at least one; the first is the first attempt's
   * @param random uniform in [0, 1)
   */
  constructor(targets: readonly Target[], random: () => number, maxAttempts: number) {
    this.#targets = targets;
    this.#random = random;
    this.#limit = Math.min(
      maxAttempts,
      targets.reduce((sum, target) => sum + target.provider.retries.attempts, 0),
    );
  }

  get current(): Target {
    return this.#targets[this.#index] as Target;
  }

  /** Most attempts there can be, the first included. */
  get maxAttempts(): number {
    return this.#limit;
  }

  /**
   * Longest that one attempt can take until its first byte, the wait before it included,
   * milliseconds.
   */
  get longestAttemptMs(): number {
    const longest = (pick: (provider: ProviderPolicy) => number): number =>
      Math.max(...this.#targets.map((target) => pick(target.provider)));
    const wait = longest(({ retries }) => retries.maxRetryAfterMs + retries.maxIntervalMs);
    return longest((provider) => provider.firstByteTimeoutMs) + wait + REPORT_MARGIN_MS;
  }

  /** After the current attempt failed. */
  next(failure: Failure): NextAttempt {
    if (this.#total >= this.#limit) return { kind: "exhausted" };
    const { retries } = this.current.provider;
    const tooLong =
      failure.retryAfterMs !== undefined && failure.retryAfterMs > retries.maxRetryAfterMs;
    if (this.#onThisTarget < retries.attempts && !tooLong) {
      const ceiling = Math.min(
        retries.maxIntervalMs,
        retries.baseIntervalMs * 2 ** (this.#onThisTarget - 1),
      );
      const jitter = this.#random() * ceiling;
      this.#onThisTarget++;
      this.#total++;
      // Full jitter; on top of what the upstream asked for, so that it never goes below that.
      return {
        kind: "attempt",
        target: this.current,
        waitMs: (failure.retryAfterMs ?? 0) + jitter,
        changed: false,
      };
    }
    return this.nextTarget();
  }

  /** Gives the current provider up at once (also one that cannot express the request). */
  nextTarget(): NextAttempt {
    if (this.#index + 1 >= this.#targets.length || this.#total >= this.#limit)
      return { kind: "exhausted" };
    this.#index++;
    this.#onThisTarget = 1;
    this.#total++;
    return { kind: "attempt", target: this.current, waitMs: 0, changed: true };
  }
}
