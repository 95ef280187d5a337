/**
 * Iterates over one call's attempts: each provider's own, then its fallbacks. Envoy detects failed
 * attempts and starts the next one; this plan selects its provider and its delay.
 */
import type { ModelProviderPolicy } from "../../policy/snapshot.ts";

export interface AttemptTarget {
  readonly provider: ModelProviderPolicy;
  /** The upstream's name of the model. */
  readonly model: string;
}

/** Reason of a failed attempt. */
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
      readonly target: AttemptTarget;
      readonly waitMs: number;
      readonly changed: boolean;
    }
  | { readonly kind: "exhausted" };

/** Allowance for the report of a failed attempt to arrive. */
const REPORT_MARGIN_MS = 1_000;

export class RetryPlan {
  readonly #targets: readonly AttemptTarget[];
  readonly #random: () => number;
  #index = 0;
  #onThisTarget = 1;
  #total = 1;
  readonly #limit: number;

  /**
   * @param targets at least one; the first is that of the first attempt
   * @param random uniform in [0, 1)
   */
  constructor(targets: readonly AttemptTarget[], random: () => number, maxAttempts: number) {
    this.#targets = targets;
    this.#random = random;
    this.#limit = Math.min(
      maxAttempts,
      targets.reduce((sum, target) => sum + target.provider.retries.attempts, 0),
    );
  }

  get current(): AttemptTarget {
    return this.#targets[this.#index] as AttemptTarget;
  }

  /** Maximum number of attempts, the first included. */
  get maxAttempts(): number {
    return this.#limit;
  }

  /**
   * Maximum time of one attempt until its first byte, including the wait before it, in
   * milliseconds.
   */
  get longestAttemptMs(): number {
    const longest = (pick: (provider: ModelProviderPolicy) => number): number =>
      Math.max(...this.#targets.map((target) => pick(target.provider)));
    const wait = longest(({ retries }) => retries.maxRetryAfterMs + retries.maxIntervalMs);
    return longest((provider) => provider.firstByteTimeoutMs) + wait + REPORT_MARGIN_MS;
  }

  /** Returns the next attempt after the current one failed. */
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
      // Full jitter is added to the upstream's requested delay, so that the delay is never shorter.
      return {
        kind: "attempt",
        target: this.current,
        waitMs: (failure.retryAfterMs ?? 0) + jitter,
        changed: false,
      };
    }
    return this.nextTarget();
  }

  /** Skips the current provider at once (also one that cannot express the request). */
  nextTarget(): NextAttempt {
    if (this.#index + 1 >= this.#targets.length || this.#total >= this.#limit)
      return { kind: "exhausted" };
    this.#index++;
    this.#onThisTarget = 1;
    this.#total++;
    return { kind: "attempt", target: this.current, waitMs: 0, changed: true };
  }
}
