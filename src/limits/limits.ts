/** Limits on shared state: decided in the store that replicas share, or in memory without one and while it is away. */
import type { Registry } from "prom-client";
import type { Clock } from "../platform/clock.ts";
import type { Logger } from "../platform/log.ts";
import type { AccountUsage, Admission, AdmitRequest, Lease, Limits, Subject, Usage } from "./contract.ts";
import { utcDay } from "./day.ts";
import { refusalOf } from "./decide.ts";
import { HeldLease, Ledger } from "./ledger.ts";
import type { RedisOptions } from "./redis-options.ts";
import { StoreMetrics } from "./store-metrics.ts";

export type {
  AccountUsage, Admission, AdmitRequest, Amounts, Check, Lease, Limits, Subject, Unit, Usage,
} from "./contract.ts";

export interface LimitsOptions {
  /** Without it all is in this process's memory. */
  readonly redis?: RedisOptions;
  readonly clock: Clock;
  readonly log: Logger;
  readonly registry: Registry;
  /** Unique for each start of a process: a restarted one counts from zero, which its predecessor's name would hide. */
  readonly processId: string;
  /** How long the store keeps a lease of a process that has died. */
  readonly leaseMs?: number;
  /** How long an admission waits for the store. */
  readonly admitTimeoutMs?: number;
}

export function createLimits(options: LimitsOptions): Limits {
  new StoreMetrics(options.registry).up(true);
  return new MemoryLimits(options.clock);
}

class MemoryLimits implements Limits {
  readonly #clock: Clock;
  readonly #ledger = new Ledger();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  admit(request: AdmitRequest): Promise<Admission> {
    const now = this.#clock.now();
    this.#ledger.pruneDaily(now);
    const day = utcDay(now);
    const scope = this.#ledger.scope(request.scope);
    const refusal = refusalOf(scope, request, day, now);
    return Promise.resolve(refusal ?? { kind: "admitted", lease: scope.hold(request, day, now) });
  }

  settle(lease: Lease, used: Usage): void {
    if (!(lease instanceof HeldLease) || lease.settled) return;
    this.#ledger.scope(lease.scope).release(lease);
    for (const account of lease.accounts) account.add(used);
  }

  record(scope: string, accounts: readonly string[], used: Usage, admittedAt: number): void {
    const day = utcDay(admittedAt);
    if (day < Ledger.oldestDay(this.#clock.now())) return;
    for (const account of accounts) this.#ledger.scope(scope).account(day, account).add(used);
  }

  usage(subjects: readonly Subject[]): Promise<readonly AccountUsage[]> {
    const day = utcDay(this.#clock.now());
    return Promise.resolve(
      subjects.map(({ scope, account }) => {
        const found = this.#ledger.scope(scope);
        return { ...found.account(day, account).own, inFlight: found.inFlight(account) };
      }),
    );
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
