/**
 * One process's side of the limits: its own knowledge, its writes to the store, and the choice of
 * who decides.
 */
import type { Registry } from "prom-client";
import type { Clock } from "../platform/clock.ts";
import type { Logger } from "../platform/log.ts";
import type {
  AccountUsage,
  Admission,
  AdmitRequest,
  Amounts,
  Check,
  Lease,
  Limits,
  Subject,
  CountedUsage,
} from "./contract.ts";
import { covers, wholeAmounts } from "./memory/day-account.ts";
import { utcDay } from "./memory/day.ts";
import { type LimitExceeded, refusalOf } from "./memory/decide.ts";
import { encoded } from "./redis/keys.ts";
import { HeldLease } from "./memory/held-lease.ts";
import { Ledger, type ScopeLedger } from "./memory/ledger.ts";
import type { RedisOptions } from "./redis/redis-options.ts";
import {
  admitWords,
  type AdmitWords,
  type Demand,
  type ScopeQuestion,
  readAdmit,
  syncWords,
  type Writer,
} from "./redis/shared-scope.ts";
import { Store } from "./redis/store.ts";
import { StoreMetrics } from "./redis/store-metrics.ts";

export interface GatewayLimitsOptions {
  /** Without it, all counters are in this process's memory. */
  readonly redis?: RedisOptions;
  readonly clock: Clock;
  readonly log: Logger;
  readonly registry: Registry;
  /**
   * Unique for each start of a process: a restarted process counts from zero, which the totals of
   * its predecessor would hide.
   */
  readonly processId: string;
  /** Time for which the store keeps a lease of a process that has died. */
  readonly leaseMs: number;
  /** Maximum time that an admission waits for the store. */
  readonly admitTimeoutMs: number;
  /** From 0 to 1: randomizes the times of connection attempts. */
  readonly random: () => number;
}

/**
 * Far from all limits, a settled call is written to the store after this delay, together with all
 * other calls that end meanwhile, which costs a fraction of the work.
 */
const SETTLE_WITHIN_MS = 5;
/** Delay of usage records that nobody waits for. */
const RECORD_WITHIN_MS = 500;
const CLOSE_MS = 1_000;

/**
 * Answer of the store to a demand; `asked` is whether the store may have received a demand without
 * an answer.
 */
type StoreAnswer =
  | { readonly kind: "held"; readonly held: Amounts }
  | { readonly kind: "refused"; readonly refusal: LimitExceeded }
  | { readonly kind: "none"; readonly asked: boolean };

/** Maximum number of scopes that are written at once during catch-up. */
const CATCH_UP_AT_ONCE = 64;

export class GatewayLimits implements Limits {
  readonly #clock: Clock;
  readonly #ledger = new Ledger();
  readonly #metrics: StoreMetrics;
  readonly #writer: Writer;
  readonly #store: Store | undefined;
  /** Scopes with something in their outbox. */
  readonly #dirty = new Set<ScopeLedger>();
  readonly #writing = new Set<Promise<unknown>>();
  #writeSoon = false;
  #tellingAgain = false;
  #cancelWrite: (() => void) | undefined;
  /** Time of the next write, on the monotonic clock. */
  #writeAt = Number.POSITIVE_INFINITY;
  #cancelRenew: (() => void) | undefined;
  #closed = false;

  constructor(options: GatewayLimitsOptions) {
    const { clock, log, redis, processId, leaseMs, admitTimeoutMs, random } = options;
    this.#clock = clock;
    this.#metrics = new StoreMetrics(options.registry);
    this.#writer = { processId: encoded(processId), leaseMs };
    if (redis === undefined) {
      log.warn(
        "no Redis is configured: limits are counted in this process's memory; a restart of the " +
          "gateway resets them, and several gateways do not share them",
      );
      this.#metrics.up(true);
      return;
    }
    this.#store = new Store({
      redis,
      clock,
      log,
      metrics: this.#metrics,
      processId,
      admitTimeoutMs,
      random,
      catchUp: () => this.#catchUp(),
      isUp: () => this.#writeDirty(),
    });
    this.#renewLater();
  }

  admit(request: AdmitRequest): Admission | Promise<Admission> {
    const now = this.#clock.now();
    this.#ledger.pruneDaily(now);
    const scope = this.#ledger.scope(request.scope);
    const store = this.#store;
    if (store?.asked === true) return this.#admitInStore(store, scope, request, now);
    return this.#admitInMemory(scope, request, now, false);
  }

  reserve(
    lease: Lease,
    checks: readonly Check[],
    amounts: Amounts,
  ): Admission | Promise<Admission> {
    // The client has disconnected meanwhile: nothing is held, and nobody waits for the answer.
    if (!(lease instanceof HeldLease) || lease.settled) return { kind: "admitted", lease };
    const asked = wholeAmounts(amounts);
    if (covers(lease.amounts, asked)) return { kind: "admitted", lease };
    const daily = checks.filter(({ kind }) => kind === "daily");
    const scope = this.#ledger.scope(lease.scope);
    const store = this.#store;
    if (store?.asked !== true) return this.#reserveInMemory(scope, lease, daily, asked);
    const demand = { lease, checks: daily, reserve: asked, expect: asked };
    return this.#reserveInStore(store, scope, demand);
  }

  settle(lease: Lease, used: CountedUsage): void {
    if (!(lease instanceof HeldLease) || lease.settled) return;
    const scope = this.#ledger.scope(lease.scope);
    scope.release(lease);
    for (const account of lease.accounts) account.add(used);
    if (this.#store === undefined) return;
    if (lease.inStore) scope.outbox.ended.add(lease.id);
    scope.outbox.live.delete(lease);
    for (const account of lease.accounts) scope.outbox.totals.add(account);
    if (scope.near) this.#writeNow(scope);
    else this.#writeWithin(scope, SETTLE_WITHIN_MS);
  }

  record(
    scopeName: string,
    accounts: readonly string[],
    used: CountedUsage,
    admittedAt: number,
  ): void {
    const day = utcDay(admittedAt);
    // Days before yesterday are no longer used.
    if (day < Ledger.oldestDay(this.#clock.now())) return;
    const scope = this.#ledger.scope(scopeName);
    for (const name of accounts) {
      const account = scope.account(day, name);
      account.add(used);
      if (this.#store !== undefined) scope.outbox.totals.add(account);
    }
    if (this.#store !== undefined) this.#writeWithin(scope, RECORD_WITHIN_MS);
  }

  async usage(subjects: readonly Subject[]): Promise<readonly AccountUsage[]> {
    const day = utcDay(this.#clock.now());
    const byScope = Map.groupBy(subjects, ({ scope }) => scope);
    const answers = new Map<Subject, AccountUsage>();
    await Promise.all(
      [...byScope].map(async ([name, asked]) => {
        const scope = this.#ledger.scope(name);
        const questions = asked.map(({ account }) => ({ account, day }));
        const heard = this.#store?.up === true ? await this.#write(scope, questions) : undefined;
        const usages =
          heard ??
          asked.map(({ account }) => ({
            ...scope.account(day, account).total,
            inFlight: scope.inFlight(account),
          }));
        for (const [index, usage] of usages.entries()) answers.set(asked[index] as Subject, usage);
      }),
    );
    return subjects.map((subject) => answers.get(subject) as AccountUsage);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelWrite?.();
    this.#cancelRenew?.();
    if (this.#store === undefined) return;
    this.#writeDirty();
    const { promise: late, resolve } = Promise.withResolvers<void>();
    const cancel = this.#clock.after(CLOSE_MS, resolve);
    await Promise.race([Promise.all(this.#writing), late]);
    cancel();
    this.#store.close();
  }

  #admitInMemory(
    scope: ScopeLedger,
    request: AdmitRequest,
    now: number,
    unanswered: boolean,
  ): Admission {
    if (this.#store !== undefined) this.#metrics.failedOpen();
    const lease = scope.lease(request, utcDay(now));
    const refusal = refusalOf(scope, request.checks, { lease, asked: lease.amounts, now });
    if (refusal !== undefined) return refusal;
    scope.hold(lease, request, now);
    // The store may still receive it.
    lease.inStore = unanswered;
    return { kind: "admitted", lease };
  }

  async #admitInStore(
    store: Store,
    scope: ScopeLedger,
    request: AdmitRequest,
    now: number,
  ): Promise<Admission> {
    const lease = scope.lease(request, utcDay(now));
    const expect = request.expect === undefined ? lease.amounts : wholeAmounts(request.expect);
    const demand = { lease, checks: request.checks, reserve: lease.amounts, expect };
    let refusedHere = false;
    const late = (reply: readonly number[]): void => {
      if (refusedHere && reply[0] === 0) this.#takeBack(scope, request, now);
    };
    const answer = await this.#ask(store, scope, demand, now, late);
    if (answer.kind === "none") {
      const admission = this.#admitInMemory(scope, request, now, answer.asked);
      refusedHere = admission.kind === "refused";
      return admission;
    }
    if (answer.kind === "refused") return answer.refusal;
    lease.amounts = answer.held;
    lease.inStore = true;
    scope.hold(lease, request, now);
    return { kind: "admitted", lease };
  }

  #reserveInMemory(
    scope: ScopeLedger,
    lease: HeldLease,
    checks: readonly Check[],
    asked: Amounts,
  ): Admission {
    if (this.#store !== undefined) this.#metrics.failedOpen();
    const refusal = refusalOf(scope, checks, { lease, asked, now: this.#clock.now() });
    if (refusal !== undefined) return refusal;
    scope.resize(lease, asked);
    return { kind: "admitted", lease };
  }

  async #reserveInStore(store: Store, scope: ScopeLedger, demand: Demand): Promise<Admission> {
    const { lease, checks, reserve } = demand;
    // A late answer needs no action: the end of the lease is written in any case.
    const answer = await this.#ask(store, scope, demand, this.#clock.now(), () => undefined);
    if (lease.settled) {
      // The client disconnected while the store was asked: the store may hold the lease again.
      scope.outbox.ended.add(lease.id);
      this.#writeNow(scope);
      return { kind: "admitted", lease };
    }
    if (answer.kind === "none") return this.#reserveInMemory(scope, lease, checks, reserve);
    if (answer.kind === "refused") return answer.refusal;
    lease.inStore = true;
    scope.resize(lease, answer.held);
    return { kind: "admitted", lease };
  }

  /**
   * @param again after local settlements were written, which may have been the cause of the refusal
   */
  async #ask(
    store: Store,
    scope: ScopeLedger,
    demand: Demand,
    now: number,
    late: (reply: readonly number[]) => void,
    again = false,
  ): Promise<StoreAnswer> {
    const { lease, checks, reserve, expect } = demand;
    let words: AdmitWords | undefined;
    let heldBack = false;
    const write = (): AdmitWords => {
      // Calls settled here must not count as reserved there.
      if ((again || scope.near) && !scope.outbox.empty) this.#track(this.#write(scope));
      heldBack = scope.outbox.ended.size > 0;
      return (words = admitWords(scope, demand, now, this.#writer));
    };
    scope.asking++;
    const reply = await store.admit(write, late);
    scope.asking--;
    if (reply === undefined || words === undefined) {
      return { kind: "none", asked: words !== undefined };
    }
    const asked = { day: lease.day, now, stored: words.stored };
    const { refusal, hasLost, far } = readAdmit(scope, checks, asked, reply);
    if (hasLost) this.#tellAgain();
    if (refusal === undefined) return { kind: "held", held: far ? expect : reserve };
    if (heldBack && refusal.check.kind !== "rate")
      return this.#ask(store, scope, demand, now, late, true);
    return { kind: "refused", refusal };
  }

  /**
   * The store answers, but has lost data: it was flushed, evicted keys, or failed over to a lagging
   * replica.
   */
  #tellAgain(): void {
    if (this.#tellingAgain) return;
    this.#tellingAgain = true;
    const telling = this.#catchUp()
      // The circuit notices it, and catches up when the store is back.
      .catch(() => {})
      .finally(() => {
        this.#tellingAgain = false;
      });
    this.#track(telling);
  }

  /** The store has admitted, late, a request that was refused here. */
  #takeBack(scope: ScopeLedger, request: AdmitRequest, at: number): void {
    scope.outbox.ended.add(request.id);
    for (const check of request.checks) {
      if (check.kind !== "rate") continue;
      scope.outbox.takenBack.push({
        window: scope.window(check.account, check.windowMs),
        entry: { id: request.id, at },
      });
    }
    this.#writeNow(scope);
  }

  #writeWithin(scope: ScopeLedger, ms: number): void {
    this.#dirty.add(scope);
    const at = this.#clock.monotonic() + ms;
    if (this.#closed || at >= this.#writeAt) return;
    this.#cancelWrite?.();
    this.#writeAt = at;
    this.#cancelWrite = this.#clock.after(ms, () => {
      this.#writeAt = Number.POSITIVE_INFINITY;
      this.#writeDirty();
    });
  }

  /** Writes at the end of this turn of the event loop, with all other calls that end in it. */
  #writeNow(scope: ScopeLedger): void {
    this.#dirty.add(scope);
    if (this.#writeSoon || this.#closed) return;
    this.#writeSoon = true;
    setImmediate(() => {
      this.#writeSoon = false;
      this.#writeDirty();
    });
  }

  /** The catch-up writes everything that this cannot. */
  #writeDirty(): void {
    if (this.#store?.up !== true) return;
    for (const scope of this.#dirty) {
      if (!scope.outbox.empty) this.#track(this.#write(scope));
    }
    this.#dirty.clear();
  }

  #track(writing: Promise<unknown>): void {
    this.#writing.add(writing);
    void writing.finally(() => this.#writing.delete(writing));
  }

  /**
   * Writes everything about a scope that the store does not know yet. Returns undefined if the
   * store did not receive it; it is then written again.
   */
  async #write(
    scope: ScopeLedger,
    questions: readonly ScopeQuestion[] = [],
  ): Promise<readonly AccountUsage[] | undefined> {
    const store = this.#store as Store;
    const ended = [...scope.outbox.ended];
    const takenBack = [...scope.outbox.takenBack];
    const syncs = syncWords(scope, questions, this.#clock.now(), this.#writer);
    const replies = await Promise.all(syncs.map(({ keys, args }) => store.sync(keys, args)));
    let answer: readonly AccountUsage[] | undefined;
    for (const [index, reply] of replies.entries()) {
      if (reply !== undefined) answer = syncs[index]?.read(reply);
    }
    if (!replies.includes(undefined)) return answer;
    // Totals and leases are rewritten when the store is back; these entries exist only here.
    for (const id of ended) scope.outbox.ended.add(id);
    scope.outbox.takenBack.push(...takenBack);
    return undefined;
  }

  /** Writes everything of every scope, because the store may have lost it or was not reachable. */
  async #catchUp(): Promise<void> {
    const now = this.#clock.now();
    const oldest = Ledger.oldestDay(now);
    const scopes = [...this.#ledger.scopes()];
    for (const scope of scopes) scope.tellEverything(oldest, now);
    for (let at = 0; at < scopes.length; at += CATCH_UP_AT_ONCE) {
      const part = scopes.slice(at, at + CATCH_UP_AT_ONCE);
      const heard = await Promise.all(part.map((scope) => this.#write(scope)));
      if (heard.includes(undefined)) throw new Error("the store did not receive everything");
    }
  }

  #renewLater(): void {
    this.#cancelRenew = this.#clock.after(Math.floor(this.#writer.leaseMs / 3), () => {
      // Scheduled first, so that an error in this renewal does not stop renewals.
      this.#renewLater();
      for (const scope of this.#ledger.scopes()) {
        for (const lease of scope.leases.values()) scope.outbox.live.add(lease);
        if (!scope.outbox.empty) this.#dirty.add(scope);
      }
      this.#writeDirty();
    });
  }
}
