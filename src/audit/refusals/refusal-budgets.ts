/** Token buckets for records of refusals, with the clock as a parameter. */

export interface Rate {
  /** Sustained rate. */
  readonly perSecond: number;
  /** Number allowed at once after a pause. */
  readonly burst: number;
}

/** Budget is a token bucket, initially full. Times are monotonic milliseconds. */
export class Budget {
  readonly #rate: Rate;
  #tokens: number;
  #at = Number.NEGATIVE_INFINITY;

  constructor(rate: Rate) {
    this.#rate = rate;
    this.#tokens = rate.burst;
  }

  /** Returns whether a token is available now. */
  has(now: number): boolean {
    if (now > this.#at) {
      const refilled = this.#tokens + ((now - this.#at) / 1000) * this.#rate.perSecond;
      this.#tokens = Math.min(this.#rate.burst, refilled);
      this.#at = now;
    }
    return this.#tokens >= 1;
  }

  /** Takes the token that {@link has} reported. */
  take(): void {
    this.#tokens -= 1;
  }
}

interface Tracked {
  readonly budget: Budget;
  /** Time of the last request. */
  at: number;
}

/**
 * CallerBudgets has a budget for each of a bounded number of callers at a time. A caller is removed
 * only when its budget is full again, so that nobody can gain a second burst through the traffic of
 * others. If there is no free place, untracked callers share one budget.
 */
export class CallerBudgets {
  readonly #rate: Rate;
  readonly #most: number;
  /** Time in which an empty budget becomes full. */
  readonly #refillMs: number;
  /** Ordered by the time of the last request, oldest first. */
  readonly #tracked = new Map<string, Tracked>();
  readonly #others: Budget;

  constructor(rate: Rate, most: number) {
    this.#rate = rate;
    this.#most = most;
    this.#refillMs = (rate.burst / rate.perSecond) * 1000;
    this.#others = new Budget(rate);
  }

  get size(): number {
    return this.#tracked.size;
  }

  of(caller: string, now: number): Budget {
    const known = this.#tracked.get(caller);
    if (known !== undefined) {
      this.#tracked.delete(caller);
      this.#tracked.set(caller, known);
      known.at = now;
      return known.budget;
    }
    if (this.#tracked.size >= this.#most && !this.#forgetOne(now)) return this.#others;
    const budget = new Budget(this.#rate);
    this.#tracked.set(caller, { budget, at: now });
    return budget;
  }

  #forgetOne(now: number): boolean {
    const [oldest] = this.#tracked;
    if (oldest === undefined || now - oldest[1].at < this.#refillMs) return false;
    return this.#tracked.delete(oldest[0]);
  }
}
