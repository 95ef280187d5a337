/**
 * The knowledge of this process: its own totals, the last known totals of the others, its leases
 * and windows. This is everything if there is no store, and the basis of decisions while the store
 * is unavailable.
 */
import type { AdmitRequest, Amounts } from "../contract.ts";
import { DAY_MS, utcDay } from "./day.ts";
import { DayAccount, UNITS } from "./day-account.ts";
import { HeldLease } from "./held-lease.ts";
import { ScopeKeys } from "../redis/keys.ts";
import { Outbox } from "../redis/outbox.ts";
import { SlidingWindow } from "./window.ts";

/** Ledger of one scope. */
export class ScopeLedger {
  readonly name: string;
  readonly keys: ScopeKeys;
  readonly outbox = new Outbox();
  /**
   * A limit was near at the last answer of the store: the ends of calls must be written at once.
   */
  near = false;
  /** Number of pending admissions at the store. */
  asking = 0;
  readonly leases = new Map<string, HeldLease>();
  readonly #days = new Map<string, Map<string, DayAccount>>();
  readonly #inFlight = new Map<string, number>();
  readonly #windows = new Map<string, SlidingWindow>();

  constructor(name: string) {
    this.name = name;
    this.keys = new ScopeKeys(name);
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
    if (window === undefined)
      this.#windows.set(key, (window = new SlidingWindow(account, windowMs)));
    return window;
  }

  /** Creates the lease of a request, which holds nothing yet. */
  lease(request: AdmitRequest, day: string): HeldLease {
    return new HeldLease(
      request,
      day,
      request.accounts.map((account) => this.account(day, account)),
    );
  }

  /**
   * Holds an admitted call, whoever admitted it: its amounts are reserved, and it is in the windows
   * of its checks.
   */
  hold(lease: HeldLease, request: AdmitRequest, now: number): void {
    this.leases.set(lease.id, lease);
    this.#count(lease, 1);
    for (const check of request.checks) {
      if (check.kind === "rate")
        this.window(check.account, check.windowMs).add({ id: request.id, at: now });
    }
  }

  /** Queues everything for a store that may have lost data or missed updates. */
  tellEverything(oldestDay: string, now: number): void {
    const { live, totals, admissions } = this.outbox;
    for (const lease of this.leases.values()) live.add(lease);
    for (const account of this.accounts()) {
      if (account.day >= oldestDay) totals.add(account);
    }
    admissions.length = 0;
    for (const window of this.#windows.values()) {
      for (const entry of window.entries(now)) admissions.push({ window, entry });
    }
  }

  /** Changes the reservation of a held lease. */
  resize(lease: HeldLease, amounts: Amounts): void {
    for (const account of lease.accounts) {
      for (const unit of UNITS) account.reserved[unit] += amounts[unit] - lease.amounts[unit];
    }
    lease.amounts = amounts;
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

  /** Removes days before `oldest` and empty windows. Returns true if nothing is left. */
  prune(oldest: string, now: number): boolean {
    for (const [day, accounts] of this.#days) {
      if (day < oldest && [...accounts.values()].every((account) => account.leases === 0))
        this.#days.delete(day);
    }
    for (const [key, window] of this.#windows) {
      if (window.count(now) === 0) this.#windows.delete(key);
    }
    return (
      this.#days.size === 0 &&
      this.#windows.size === 0 &&
      this.leases.size === 0 &&
      this.asking === 0 &&
      this.outbox.empty
    );
  }
}

export class Ledger {
  readonly #scopes = new Map<string, ScopeLedger>();
  #prunedOn = "";

  /** Yesterday is kept, because calls that began before midnight are settled in it. */
  static oldestDay(now: number): string {
    return utcDay(now - DAY_MS);
  }

  scope(name: string): ScopeLedger {
    let scope = this.#scopes.get(name);
    if (scope === undefined) this.#scopes.set(name, (scope = new ScopeLedger(name)));
    return scope;
  }

  scopes(): Iterable<ScopeLedger> {
    return this.#scopes.values();
  }

  /** Once a day: removes everything that no check can use any more. */
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
