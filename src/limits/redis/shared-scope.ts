/** Encodes a scope for the store's scripts, and applies their answers. */
import type { AccountUsage, Amounts, Check, Unit } from "../contract.ts";
import { CONCURRENCY_RETRY_MS, type LimitExceeded } from "../memory/decide.ts";
import { msToNextDay } from "../memory/day.ts";
import { encoded } from "./keys.ts";
import { type DayAccount, TOTALS } from "../memory/day-account.ts";
import type { HeldLease } from "../memory/held-lease.ts";
import type { ScopeLedger } from "../memory/ledger.ts";
import type { WindowNews } from "./outbox.ts";
import type { ScriptArguments, Keys } from "./store.ts";

/** Time for which unused leases and windows stay in the store. */
const IDLE_TTL_MS = 3_600_000;
const WINDOW_SLACK_MS = 60_000;
/**
 * Today's and yesterday's usage is read, by gateways in any time zone and after an outage of any
 * length.
 */
const USAGE_TTL_MS = 3 * 86_400_000;
/** Bound of one script, so that no script blocks the store for long. */
const LARGEST_SYNC = 500;

const UNIT_FIELD: Readonly<Record<Unit, string>> = { tokens: "t", microUsd: "m", requests: "q" };

export interface Words {
  readonly keys: Keys;
  readonly args: ScriptArguments;
}

export interface Writer {
  readonly processId: string;
  readonly leaseMs: number;
}

export interface AdmitWords extends Words {
  /** Our own usage that the store has confirmed, by daily check: the store must not have less. */
  readonly stored: readonly number[];
}

/** A demand on the store: to hold `reserve` for a lease, or `expect` if no limit is near. */
export interface Demand {
  readonly lease: HeldLease;
  readonly checks: readonly Check[];
  readonly reserve: Amounts;
  readonly expect: Amounts;
}

export function admitWords(
  scope: ScopeLedger,
  { lease, checks, reserve, expect }: Demand,
  now: number,
  writer: Writer,
): AdmitWords {
  const { keys } = scope;
  const named = [keys.leases, keys.amounts, keys.reserved, keys.usage(lease.day)];
  const args: (string | number)[] = [
    now,
    lease.id,
    lease.packed(reserve),
    now + writer.leaseMs,
    Math.max(IDLE_TTL_MS, 2 * writer.leaseMs),
    writer.processId,
    lease.packed(expect),
  ];
  const stored: number[] = [];
  for (const check of checks) {
    const account = scope.account(lease.day, check.account);
    switch (check.kind) {
      case "rate":
        named.push(keys.window(check.account, check.windowMs));
        args.push(
          "r",
          account.field,
          check.limit,
          check.windowMs,
          check.windowMs + WINDOW_SLACK_MS,
          0,
        );
        break;
      case "concurrency":
        args.push("c", account.field, check.limit, 0, 0, 0);
        break;
      case "daily":
        stored.push(account.stored[check.unit]);
        args.push(
          "d",
          account.field,
          check.limit,
          UNIT_FIELD[check.unit],
          account.others[check.unit],
          account.own[check.unit],
        );
        break;
    }
  }
  return { keys: named, args, stored };
}

export interface AdmissionVerdict {
  readonly refusal: LimitExceeded | undefined;
  /** The store has less of our own usage than it once confirmed. */
  readonly hasLost: boolean;
  /** All limits are far: the store holds the expected amounts, not only the requested ones. */
  readonly far: boolean;
}

export function readAdmit(
  scope: ScopeLedger,
  checks: readonly Check[],
  asked: { readonly day: string; readonly now: number; readonly stored: readonly number[] },
  reply: readonly number[],
): AdmissionVerdict {
  const [index = 0, used = 0, reserved = 0, wait = 0, near = 0] = reply;
  scope.near = near === 2;
  let hasLost = false;
  let at = 5;
  let daily = 0;
  for (const check of checks) {
    if (check.kind !== "daily") continue;
    scope.account(asked.day, check.account).heard(check.unit, reply[at] ?? 0);
    if ((reply[at + 1] ?? 0) < (asked.stored[daily++] ?? 0)) hasLost = true;
    at += 2;
  }
  const check = checks[index - 1];
  if (check === undefined) return { refusal: undefined, hasLost, far: near === 0 };
  return {
    refusal: {
      kind: "refused",
      check,
      used,
      reserved,
      retryAfterMs: retryAfterMs(check, wait, asked.now),
    },
    hasLost,
    far: near === 0,
  };
}

function retryAfterMs(check: Check, wait: number, now: number): number {
  switch (check.kind) {
    case "rate":
      return wait;
    case "concurrency":
      return CONCURRENCY_RETRY_MS;
    case "daily":
      return msToNextDay(now);
  }
}

export interface Sync extends Words {
  /** Reads the answer; returns the requested usage. */
  readonly read: (reply: readonly number[]) => readonly AccountUsage[];
}

export interface ScopeQuestion {
  readonly account: string;
  readonly day: string;
}

/**
 * Encodes everything in the outbox, which is empty afterwards, in as few syncs as possible; the
 * last one contains the questions.
 */
export function syncWords(
  scope: ScopeLedger,
  questions: readonly ScopeQuestion[],
  now: number,
  writer: Writer,
): readonly Sync[] {
  const { outbox } = scope;
  const syncs: Sync[] = [];
  const live = [...outbox.live];
  const totals = [...outbox.totals];
  const admissions = [...outbox.admissions];
  const next = <T>(items: T[]): T[] => items.splice(0, LARGEST_SYNC);
  while (
    live.length > LARGEST_SYNC ||
    totals.length > LARGEST_SYNC ||
    admissions.length > LARGEST_SYNC
  ) {
    syncs.push(
      oneSync(
        scope,
        { ...NOTHING, live: next(live), totals: next(totals), admissions: next(admissions) },
        now,
        writer,
      ),
    );
  }
  const rest = {
    ended: [...outbox.ended],
    live,
    totals,
    admissions,
    takenBack: [...outbox.takenBack],
    questions,
  };
  syncs.push(oneSync(scope, rest, now, writer));
  outbox.clear();
  return syncs;
}

interface Part {
  readonly ended: readonly string[];
  readonly live: readonly HeldLease[];
  readonly totals: readonly DayAccount[];
  readonly admissions: readonly WindowNews[];
  readonly takenBack: readonly WindowNews[];
  readonly questions: readonly ScopeQuestion[];
}

const NOTHING: Part = {
  ended: [],
  live: [],
  totals: [],
  admissions: [],
  takenBack: [],
  questions: [],
};

function oneSync(scope: ScopeLedger, part: Part, now: number, writer: Writer): Sync {
  const keys: string[] = [scope.keys.leases, scope.keys.amounts, scope.keys.reserved];
  const key = (name: string): number => {
    const known = keys.indexOf(name, 3);
    return known < 0 ? keys.push(name) : known + 1;
  };
  const ttl = Math.max(IDLE_TTL_MS, 2 * writer.leaseMs);
  const args: (string | number)[] = [
    now,
    now + writer.leaseMs,
    ttl,
    USAGE_TTL_MS,
    writer.processId,
  ];
  args.push(part.ended.length, ...part.ended);
  args.push(part.live.length);
  for (const lease of part.live) {
    lease.inStore = true;
    args.push(lease.id, lease.packed());
  }
  args.push(part.totals.length);
  const said = part.totals.map((account) => ({ account, own: { ...account.own } }));
  for (const { account, own } of said) {
    args.push(
      key(scope.keys.usage(account.day)),
      account.field,
      own.tokens,
      own.microUsd,
      own.requests,
      own.unpricedRequests,
    );
  }
  args.push(part.admissions.length);
  for (const { window, entry } of part.admissions) {
    args.push(
      key(scope.keys.window(window.account, window.windowMs)),
      window.windowMs + WINDOW_SLACK_MS,
      entry.at,
      entry.id,
    );
  }
  args.push(part.takenBack.length);
  for (const { window, entry } of part.takenBack) {
    args.push(key(scope.keys.window(window.account, window.windowMs)), entry.id);
  }
  args.push(part.questions.length);
  for (const { account, day } of part.questions)
    args.push(key(scope.keys.usage(day)), encoded(account));
  const read = (reply: readonly number[]): readonly AccountUsage[] => {
    let at = 0;
    for (const { account, own } of said) {
      for (const unit of TOTALS) {
        account.heard(unit, reply[at++] ?? 0);
        account.stored[unit] = Math.max(account.stored[unit], own[unit]);
      }
    }
    return part.questions.map(({ account, day }) => {
      const known = scope.account(day, account);
      for (const unit of TOTALS) known.heard(unit, (reply[at++] ?? 0) - known.own[unit]);
      return { ...known.total, inFlight: reply[at++] ?? 0 };
    });
  };
  return { keys, args, read };
}
