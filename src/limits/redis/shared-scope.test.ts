/** Arguments of the store's scripts, word by word, and the reading of their answers. */
import { describe, expect, test } from "vitest";
import type { Amounts, Check } from "../contract.ts";
import type { HeldLease } from "../memory/held-lease.ts";
import { ScopeLedger } from "../memory/ledger.ts";
import { concurrency, daily, NOON, rate } from "../testing.ts";
import { admitWords, readAdmit, syncWords } from "./shared-scope.ts";

const DAY = "2026-11-21";
const WRITER = { processId: "p1", leaseMs: 30_000 };
const KEYS = ["leases", "amounts", "reserved"].map((name) => `svc:{agent/ns/a}:${name}`);
const USAGE = `svc:{agent/ns/a}:usage:${DAY}`;
const WINDOW = "svc:{agent/ns/a}:window:60000:agent";
const HOUR = 3_600_000;
const THREE_DAYS = 3 * 86_400_000;

const scopeOf = (): ScopeLedger => new ScopeLedger("agent/ns/a");

const amounts = (tokens: number): Amounts => ({ tokens, microUsd: 2, requests: 1 });

function leaseOf(
  scope: ScopeLedger,
  id = "l1",
  accounts: readonly string[] = ["agent"],
): HeldLease {
  const request = { id, scope: scope.name, accounts, checks: [], reserve: amounts(5) };
  return scope.lease(request, DAY);
}

describe("an admission", () => {
  const words = (scope: ScopeLedger, checks: readonly Check[], leaseMs = WRITER.leaseMs) => {
    const lease = leaseOf(scope);
    const demand = { lease, checks, reserve: amounts(5), expect: amounts(9) };
    return admitWords(scope, demand, NOON, { ...WRITER, leaseMs });
  };
  const HEAD = [NOON, "l1", `${DAY}|5|2|1|agent`, NOON + 30_000, HOUR, "p1", `${DAY}|9|2|1|agent`];

  test("names its lease, both amounts, and when it expires", () => {
    expect(words(scopeOf(), [])).toEqual({ keys: [...KEYS, USAGE], args: HEAD, stored: [] });
  });

  test("keeps its keys for an hour, or twice as long as leases if that is longer", () => {
    const args = (leaseMs: number): unknown => words(scopeOf(), [], leaseMs).args[4];
    expect([args(1), args(HOUR / 2), args(HOUR)]).toEqual([HOUR, HOUR, 2 * HOUR]);
  });

  test("has six words for each check, with what this process knows of a day", () => {
    const scope = scopeOf();
    const account = scope.account(DAY, "agent");
    Object.assign(account.own, { tokens: 30, microUsd: 31, requests: 32 });
    Object.assign(account.others, { tokens: 40, microUsd: 41, requests: 42 });
    Object.assign(account.stored, { tokens: 20, microUsd: 21, requests: 22 });
    const checks = [
      rate(7),
      concurrency(8),
      daily(100),
      daily(101, "microUsd"),
      daily(102, "requests"),
    ];
    const { keys, args, stored } = words(scope, checks);
    expect(keys).toEqual([...KEYS, USAGE, WINDOW]);
    expect(args.slice(HEAD.length)).toEqual(
      [
        ["r", "agent", 7, 60_000, 120_000, 0],
        ["c", "agent", 8, 0, 0, 0],
        ["d", "agent", 100, "t", 40, 30],
        ["d", "agent", 101, "m", 41, 31],
        ["d", "agent", 102, "q", 42, 32],
      ].flat(),
    );
    expect(stored).toEqual([20, 21, 22]);
  });
});

describe("the answer to an admission", () => {
  const CHECKS = [rate(7), daily(100), concurrency(8), daily(102, "requests")];
  const read = (reply: readonly number[], stored = [10, 20], scope = scopeOf()) => ({
    scope,
    verdict: readAdmit(scope, CHECKS, { day: DAY, now: NOON, stored }, reply),
  });

  test.each([
    [0, false, true],
    [1, false, false],
    [2, true, false],
  ])("says how near a limit is: %i", (nearness, near, far) => {
    const { scope, verdict } = read([0, 0, 0, 0, nearness, 0, 10, 0, 20]);
    expect([scope.near, verdict.far]).toEqual([near, far]);
    expect(verdict.refusal).toBeUndefined();
    const refused = read([3, 0, 8, 0, nearness, 0, 10, 0, 20]);
    expect([refused.scope.near, refused.verdict.far]).toEqual([near, far]);
  });

  test("is far from all limits if a store says nothing more", () => {
    expect(read([0]).verdict.far).toBe(true);
  });

  test.each([
    [1, 5_000, 5_000],
    [2, 5_000, 43_200_000],
    [3, 5_000, 1_000],
    [4, 5_000, 43_200_000],
  ])("refuses by check %i", (index, wait, retryAfterMs) => {
    expect(read([index, 3, 4, wait, 0, 0, 10, 0, 20]).verdict.refusal).toEqual({
      kind: "refused",
      check: CHECKS[index - 1],
      used: 3,
      reserved: 4,
      retryAfterMs,
    });
  });

  test.each([
    ["as much as it confirmed", 10, 20, false],
    ["more than it confirmed", 11, 21, false],
    ["less of the first", 9, 20, true],
    ["less of the second", 10, 19, true],
  ])("a store that has %s: lost data %4$s", (_name, tokens, requests, lost) => {
    expect(read([0, 0, 0, 0, 0, 0, tokens, 0, requests]).verdict.hasLost).toBe(lost);
  });

  test("tells what others used, which never becomes less", () => {
    const { scope } = read([0, 0, 0, 0, 0, 70, 10, 80, 20]);
    expect(scope.account(DAY, "agent").others).toMatchObject({ tokens: 70, requests: 80 });
    read([0, 0, 0, 0, 0, 7, 10, 81, 20], [10, 20], scope);
    expect(scope.account(DAY, "agent").others).toEqual({
      tokens: 70,
      microUsd: 0,
      requests: 81,
      unpricedRequests: 0,
    });
  });
});

describe("a write", () => {
  const HEAD = [NOON, NOON + 30_000, HOUR, THREE_DAYS, "p1"];
  const write = (scope: ScopeLedger, questions: Parameters<typeof syncWords>[1] = []) =>
    syncWords(scope, questions, NOON, WRITER);

  test("of nothing has six empty sections", () => {
    expect(write(scopeOf())).toMatchObject([{ keys: KEYS, args: [...HEAD, 0, 0, 0, 0, 0, 0] }]);
  });

  test("has each change in its section, names each key once, and empties the outbox", () => {
    const scope = scopeOf();
    const { outbox } = scope;
    const window = scope.window("agent", 60_000);
    const [live, account] = [leaseOf(scope, "l2"), scope.account(DAY, "agent")];
    Object.assign(account.own, { tokens: 30, microUsd: 31, requests: 32, unpricedRequests: 33 });
    outbox.ended.add("l0").add("l1");
    outbox.live.add(live);
    outbox.totals.add(account).add(scope.account(DAY, "key/x"));
    outbox.admissions.push({ window, entry: { id: "a1", at: NOON - 5 } });
    outbox.takenBack.push({ window, entry: { id: "a2", at: NOON - 6 } });
    const [only, ...more] = write(scope, [{ account: "a|b", day: DAY }]);
    expect(more).toEqual([]);
    expect(only?.keys).toEqual([...KEYS, USAGE, WINDOW]);
    expect(only?.args).toEqual(
      [
        HEAD,
        [2, "l0", "l1"],
        [1, "l2", `${DAY}|5|2|1|agent`],
        [2, 4, "agent", 30, 31, 32, 33, 4, "key/x", 0, 0, 0, 0],
        [1, 5, 120_000, NOON - 5, "a1"],
        [1, 5, "a2"],
        [1, 4, "a%7Cb"],
      ].flat(),
    );
    expect(live.inStore).toBe(true);
    expect(outbox.empty).toBe(true);
  });

  test("keeps its keys as long as an admission does", () => {
    const [only] = syncWords(scopeOf(), [], NOON, { ...WRITER, leaseMs: HOUR });
    expect(only?.args.slice(0, 5)).toEqual([NOON, NOON + HOUR, 2 * HOUR, THREE_DAYS, "p1"]);
  });

  test.each([
    [500, [500]],
    [501, [500, 1]],
    [1_000, [500, 500]],
    [1_001, [500, 500, 1]],
  ])("of %i changes of a kind is told in parts of %j", (count, parts) => {
    const numbers = Array.from({ length: count }, (_, index) => index);
    const filled: readonly ((scope: ScopeLedger) => void)[] = [
      (scope) => numbers.forEach((n) => scope.outbox.live.add(leaseOf(scope, `l${n}`))),
      (scope) => numbers.forEach((n) => scope.outbox.totals.add(scope.account(DAY, `k${n}`))),
      (scope) =>
        numbers.forEach((n) => {
          const entry = { id: `a${n}`, at: NOON };
          scope.outbox.admissions.push({ window: scope.window("agent", 60_000), entry });
        }),
    ];
    for (const [section, fill] of filled.entries()) {
      const scope = scopeOf();
      fill(scope);
      scope.outbox.ended.add("e");
      const writes = write(scope, [{ account: "agent", day: DAY }]);
      const last = writes.length - 1;
      expect(writes.map(({ args }, index) => sizes(args, index === last)[section])).toEqual(parts);
      // Only the last part has the ended leases and the questions.
      expect(writes.map(({ args }) => args[5])).toEqual(writes.map((_, n) => (n === last ? 1 : 0)));
    }
  });

  /** Numbers of live leases, totals and admissions of a write. */
  function sizes(args: readonly (string | number)[], isLast: boolean): readonly number[] {
    let at = 5 + (isLast ? 2 : 1);
    return [2, 6, 4].map((words) => {
      const size = Number(args[at]);
      at += 1 + size * words;
      return size;
    });
  }

  test("teaches what others used, what the store has confirmed, and answers questions", () => {
    const scope = scopeOf();
    const account = scope.account(DAY, "agent");
    Object.assign(account.own, { tokens: 30, microUsd: 31, requests: 32, unpricedRequests: 33 });
    scope.outbox.totals.add(account);
    const questions = [
      { account: "agent", day: DAY },
      { account: "key/x", day: DAY },
    ];
    const [only] = write(scope, questions);
    // Spent between the write and its answer: the store has not confirmed it.
    account.own.tokens = 99;
    const answer = only?.read([1, 2, 3, 4, 50, 60, 70, 80, 2, 5, 6, 7, 8, 1]);
    expect(account.stored).toEqual({
      tokens: 30,
      microUsd: 31,
      requests: 32,
      unpricedRequests: 33,
    });
    expect(account.others).toEqual({
      tokens: 1,
      microUsd: 29,
      requests: 38,
      unpricedRequests: 47,
    });
    expect(answer).toEqual([
      { tokens: 100, microUsd: 60, requests: 70, unpricedRequests: 80, inFlight: 2 },
      { tokens: 5, microUsd: 6, requests: 7, unpricedRequests: 8, inFlight: 1 },
    ]);
  });

  test("confirms no less than an earlier one", () => {
    const scope = scopeOf();
    const account = scope.account(DAY, "agent");
    account.own.tokens = 30;
    scope.outbox.totals.add(account);
    const [early] = write(scope);
    account.own.tokens = 40;
    scope.outbox.totals.add(account);
    const [late] = write(scope);
    late?.read([0, 0, 0, 0]);
    early?.read([0, 0, 0, 0]);
    expect(account.stored.tokens).toBe(40);
  });
});
