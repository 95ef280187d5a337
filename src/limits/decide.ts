/** The decision from what this process knows. The store's script makes the same one from what all processes know. */
import type { Admission, Check } from "./contract.ts";
import { msToNextDay } from "./day.ts";
import type { HeldLease } from "./held-lease.ts";
import type { ScopeLedger } from "./ledger.ts";

export type Refusal = Extract<Admission, { kind: "refused" }>;

/** Nobody knows when a call ends; clients are asked not to hammer meanwhile. */
export const CONCURRENCY_RETRY_MS = 1_000;

/** The first check that refuses, or undefined. */
export function refusalOf(
  scope: ScopeLedger,
  checks: readonly Check[],
  lease: HeldLease,
  now: number,
): Refusal | undefined {
  for (const check of checks) {
    const refusal = judge(scope, check, lease, now);
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}

function judge(
  scope: ScopeLedger,
  check: Check,
  lease: HeldLease,
  now: number,
): Refusal | undefined {
  switch (check.kind) {
    case "rate": {
      const window = scope.window(check.account, check.windowMs);
      const used = window.count(now);
      if (used < check.limit) return undefined;
      return {
        kind: "refused",
        check,
        used,
        reserved: 0,
        retryAfterMs: window.retryAfterMs(now, check.limit),
      };
    }
    case "concurrency": {
      const reserved = scope.inFlight(check.account);
      if (reserved < check.limit) return undefined;
      return { kind: "refused", check, used: 0, reserved, retryAfterMs: CONCURRENCY_RETRY_MS };
    }
    case "daily": {
      const account = scope.account(lease.day, check.account);
      const used = account.own[check.unit] + account.others[check.unit];
      const reserved = account.reserved[check.unit];
      if (used + reserved + lease.amounts[check.unit] <= check.limit) return undefined;
      return { kind: "refused", check, used, reserved, retryAfterMs: msToNextDay(now) };
    }
  }
}
