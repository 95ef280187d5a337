/**
 * What this process knows: its own totals, what it last heard of the others', its leases and windows. The whole truth
 * when there is no store, and what decides while the store is away.
 */
import type { AdmitRequest, Amounts, Lease, Unit, Usage } from "./contract.ts";
import { DAY_MS, utcDay } from "./day.ts";
import { SlidingWindow } from "./window.ts";

/** Counters of one account on one day. Totals only grow; that is what makes writing them again harmless. */
export class DayAccount {
  readonly day: string;
  readonly account: string;
  /** What calls of this process used. */
  readonly own: Totals = zero();
  /** What other processes had used when the store last said so. */
  readonly others: Totals = zero();
  /** What leases of this process have reserved. */
  readonly reserved: Record<Unit, number> = { tokens: 0, microUsd: 0, requests: 0 };
  leases = 0;

  constructor(day: string, account: string) {
    this.day = day;
    this.account = account;
  }

  add(used: Usage): void {
    this.own.tokens += whole(used.tokens);
    this.own.microUsd += whole(used.microUsd);
    this.own.requests += whole(used.requests);
    if (used.unpriced) this.own.unpricedRequests++;
  }

  /** What the store says of the others never shrinks: less means that it has lost something. */
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

/** Counters hold whole numbers that are not negative, whatever comes. */
const whole = (amount: number): number => (amount > 0 ? Math.min(Math.ceil(amount), Number.MAX_SAFE_INTEGER) : 0);

/** A lease with what it needs to be given back. */
export class HeldLease implements Lease {
  readonly id: string;
  readonly scope: string;
  readonly day: string;
  readonly accounts: readonly DayAccount[];
  readonly amounts: Amounts;
  /** The store may have it, so that settling must take it away there. */
  inStore = false;
  settled = false;

  constructor(request: AdmitRequest, day: string, accounts: readonly DayAccount[], amounts: Amounts) {
    this.id = request.id;
    this.scope = request.scope;
    this.day = day;
    this.accounts = accounts;
    this.amounts = amounts;
  }
}

/** Of one scope. */
export class ScopeLedger {
  readonly name: string;
  readonly leases = new Map<string, HeldLease>();
  readonly #days = new Map<string, Map<string, DayAccount>>();
  readonly #inFlight = new Map<string, number>();
  readonly #windows = new Map<string, SlidingWindow>();

  constructor(name: string) {
    this.name = name;
  }

  account(day: string, account: string): DayAccount {
    let accounts = this.#days.get(day);
    if (accounts === undefined) this.#days.set(day, (accounts = new Map()));
    let found = accounts.get(account);
    if (found === undefined) accounts.set(account, (found = new DayAccount(day, account)));
    return found;
  }

  *accounts(): Iterable<DayAccount> {
    for (const accounts of this.#days.values()) yield* accounts.values();
  }

  inFlight(account: string): number {
    return this.#inFlight.get(account) ?? 0;
  }

  window(account: string, windowMs: number): SlidingWindow {
    const key = `${windowMs} ${account}`;
    let window = this.#windows.get(key);
    if (window === undefined) this.#windows.set(key, (window = new SlidingWindow(account, windowMs)));
    return window;
  }

  windows(): Iterable<SlidingWindow> {
    return this.#windows.values();
  }

  /** The call is admitted, by whomever: it holds its amounts from now on, and is in the windows of its checks. */
  hold(request: AdmitRequest, day: string, now: number): HeldLease {
    const accounts = request.accounts.map((account) => this.account(day, account));
    const { tokens, microUsd, requests } = request.reserve;
    const amounts = { tokens: whole(tokens), microUsd: whole(microUsd), requests: whole(requests) };
    const lease = new HeldLease(request, day, accounts, amounts);
    this.leases.set(lease.id, lease);
    this.#count(lease, 1);
    for (const check of request.checks) {
      if (check.kind === "rate") this.window(check.account, check.windowMs).add({ id: request.id, at: now });
    }
    return lease;
  }

  release(lease: HeldLease): void {
    lease.settled = true;
    this.leases.delete(lease.id);
    this.#count(lease, -1);
  }

  #count(lease: HeldLease, sign: 1 | -1): void {
    for (const account of lease.accounts) {
      for (const unit of UNITS) account.reserved[unit] += sign * lease.amounts[unit];
      account.leases += sign;
      const calls = this.inFlight(account.account) + sign;
      if (calls > 0) this.#inFlight.set(account.account, calls);
      else this.#inFlight.delete(account.account);
    }
  }

  /** Lets go of days before `oldest` and of empty windows. True when nothing is left. */
  prune(oldest: string, now: number): boolean {
    for (const [day, accounts] of this.#days) {
      if (day < oldest && [...accounts.values()].every((account) => account.leases === 0)) this.#days.delete(day);
    }
    for (const [key, window] of this.#windows) {
      if (window.count(now) === 0) this.#windows.delete(key);
    }
    return this.#days.size === 0 && this.#windows.size === 0 && this.leases.size === 0;
  }
}

export class Ledger {
  readonly #scopes = new Map<string, ScopeLedger>();
  #prunedOn = "";

  /** Yesterday's is kept: calls that began before midnight settle into it. */
  static oldestDay(now: number): string {
    return utcDay(now - DAY_MS);
  }

  scope(name: string): ScopeLedger {
    let scope = this.#scopes.get(name);
    if (scope === undefined) this.#scopes.set(name, (scope = new ScopeLedger(name)));
    return scope;
  }

  /** As {@link scope}, but does not make one. */
  known(name: string): ScopeLedger | undefined {
    return this.#scopes.get(name);
  }

  scopes(): Iterable<ScopeLedger> {
    return this.#scopes.values();
  }

  /** Once a day: forgets what no check can look at any more. */
  pruneDaily(now: number): void {
    const today = utcDay(now);
    if (today === this.#prunedOn) return;
    this.#prunedOn = today;
    const oldest = Ledger.oldestDay(now);
    for (const scope of this.#scopes.values()) {
      if (scope.prune(oldest, now)) this.#scopes.delete(scope.name);
    }
  }
}
