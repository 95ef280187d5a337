/** Counters of one account on one UTC day, as one process knows them. */
import type { Amounts, Unit, CountedUsage } from "../contract.ts";
import { encoded } from "../redis/keys.ts";

/** Counters of one account on one day. Totals only grow, so repeated writes do no harm. */
export class DayAccount {
  readonly day: string;
  readonly account: string;
  /** Name of the account in the store. */
  readonly field: string;
  /** Usage of this process's calls. */
  readonly own: Totals = zero();
  /** Last known usage of other processes. */
  readonly others: Totals = zero();
  /** Part of our own usage that the store has confirmed: if it has less, it has lost data. */
  readonly stored: Totals = zero();
  /** Reservations of this process's leases. */
  readonly reserved: Record<Unit, number> = { tokens: 0, microUsd: 0, requests: 0 };
  leases = 0;

  constructor(day: string, account: string) {
    this.day = day;
    this.account = account;
    this.field = encoded(account);
  }

  add(used: CountedUsage): void {
    this.own.tokens += whole(used.tokens);
    this.own.microUsd += whole(used.microUsd);
    this.own.requests += whole(used.requests);
    if (used.unpriced) this.own.unpricedRequests++;
  }

  /** Known usage of all processes. */
  get total(): Totals {
    const { own, others } = this;
    return {
      tokens: own.tokens + others.tokens,
      microUsd: own.microUsd + others.microUsd,
      requests: own.requests + others.requests,
      unpricedRequests: own.unpricedRequests + others.unpricedRequests,
    };
  }

  /**
   * The reported usage of others never decreases: a smaller value means that the store has lost
   * data.
   */
  heard(unit: keyof Totals, others: number): void {
    if (others > this.others[unit]) this.others[unit] = others;
  }
}

export interface Totals {
  tokens: number;
  microUsd: number;
  requests: number;
  unpricedRequests: number;
}

export const UNITS = ["tokens", "microUsd", "requests"] as const satisfies readonly Unit[];
export const TOTALS = [...UNITS, "unpricedRequests"] as const satisfies readonly (keyof Totals)[];

const zero = (): Totals => ({ tokens: 0, microUsd: 0, requests: 0, unpricedRequests: 0 });

/** Counters hold non-negative whole numbers, whatever the input. */
export const whole = (amount: number): number =>
  amount > 0 ? Math.min(Math.ceil(amount), Number.MAX_SAFE_INTEGER) : 0;

export function wholeAmounts({ tokens, microUsd, requests }: Amounts): Amounts {
  return { tokens: whole(tokens), microUsd: whole(microUsd), requests: whole(requests) };
}

/** Returns whether `held` is at least `wanted` in every unit. */
export function covers(held: Amounts, wanted: Amounts): boolean {
  return UNITS.every((unit) => held[unit] >= wanted[unit]);
}
