/**
 * Decides from the knowledge of this process. The store's script makes the same decision from the
 * knowledge of all processes.
 */
import type { Admission, Amounts, Check } from "../contract.ts";
import { msToNextDay } from "./day.ts";
import type { HeldLease } from "./held-lease.ts";
import type { ScopeLedger } from "./ledger.ts";

export type LimitExceeded = Extract<Admission, { kind: "refused" }>;

/** The end of a call is unknown; clients are asked not to retry too often meanwhile. */
export const CONCURRENCY_RETRY_MS = 1_000;

/** The demand of a lease; what the lease already holds does not count against it. */
export interface AdmissionQuestion {
  readonly lease: HeldLease;
  readonly asked: Amounts;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** Returns the refusal of the first check that refuses, or undefined. */
export function refusalOf(
  scope: ScopeLedger,
  checks: readonly Check[],
  question: AdmissionQuestion,
): LimitExceeded | undefined {
  for (const check of checks) {
    const refusal = judge(scope, check, question);
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}

function judge(
  scope: ScopeLedger,
  check: Check,
  { lease, asked, now }: AdmissionQuestion,
): LimitExceeded | undefined {
  switch (check.kind) {
    case "rate": {
      const window = scope.window(check.account, check.windowMs);
      const used = window.count(now);
      if (used < check.limit) return undefined;
      const retryAfterMs = window.retryAfterMs(now, check.limit);
      return { kind: "refused", check, used, reserved: 0, retryAfterMs };
    }
    case "concurrency": {
      const reserved = scope.inFlight(check.account);
      if (reserved < check.limit) return undefined;
      return { kind: "refused", check, used: 0, reserved, retryAfterMs: CONCURRENCY_RETRY_MS };
    }
    case "daily": {
      const account = scope.account(lease.day, check.account);
      const used = account.own[check.unit] + account.others[check.unit];
      const held = scope.leases.get(lease.id) === lease ? lease.amounts[check.unit] : 0;
      const reserved = account.reserved[check.unit] - held;
      if (used + reserved + asked[check.unit] <= check.limit) return undefined;
      return { kind: "refused", check, used, reserved, retryAfterMs: msToNextDay(now) };
    }
  }
}
