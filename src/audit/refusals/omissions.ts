/** Counts of refusals without a record of their own, until a record has reported them. */
import type { AuditValue } from "../event.ts";

export type LeftOutReason = "rate" | "space" | "failure";

/** Number of names that one record lists; the rest is counted together. */
export const MOST_CALLERS = 50;
export const MOST_CODES = 50;

export type LeftOut = Readonly<Record<string, AuditValue>>;

export interface Omission {
  readonly caller: string;
  readonly code: string;
  readonly reason: LeftOutReason;
  /** Milliseconds since the epoch. */
  readonly time: number;
}

/** Counts by name, for a bounded number of names. */
class Tally {
  readonly #most: number;
  readonly #counts = new Map<string, number>();
  others = 0;

  constructor(most: number) {
    this.#most = most;
  }

  add(name: string, count: number): void {
    const known = this.#counts.get(name);
    if (known === undefined && this.#counts.size >= this.#most) this.others += count;
    else this.#counts.set(name, (known ?? 0) + count);
  }

  merge(other: Tally): void {
    for (const [name, count] of other.#counts) this.add(name, count);
    this.others += other.others;
  }

  get byName(): Readonly<Record<string, number>> {
    const names = [...this.#counts].sort(([a], [b]) => (a < b ? -1 : 1));
    return Object.fromEntries(names);
  }
}

export class Omissions {
  #count = 0;
  #since = Number.POSITIVE_INFINITY;
  #until = Number.NEGATIVE_INFINITY;
  readonly #callers = new Tally(MOST_CALLERS);
  readonly #codes = new Tally(MOST_CODES);
  readonly #reasons = new Tally(3);

  get empty(): boolean {
    return this.#count === 0;
  }

  add({ caller, code, reason, time }: Omission): void {
    this.#count += 1;
    // The clock may be set back.
    this.#since = Math.min(this.#since, time);
    this.#until = Math.max(this.#until, time);
    this.#callers.add(caller, 1);
    this.#codes.add(code, 1);
    this.#reasons.add(reason, 1);
  }

  merge(later: Omissions): void {
    this.#count += later.#count;
    this.#since = Math.min(this.#since, later.#since);
    this.#until = Math.max(this.#until, later.#until);
    this.#callers.merge(later.#callers);
    this.#codes.merge(later.#codes);
    this.#reasons.merge(later.#reasons);
  }

  /**
   * Returns the fields of the record that reports the refusals; not for zero refusals. @param of
   * type of the omitted records
   */
  told(of: string): LeftOut {
    return {
      callers: this.#callers.byName,
      codes: this.#codes.byName,
      count: this.#count,
      of,
      other_callers: this.#callers.others || undefined,
      other_codes: this.#codes.others || undefined,
      reasons: this.#reasons.byName,
      since: new Date(this.#since).toISOString(),
      until: new Date(this.#until).toISOString(),
    };
  }
}
