/** The decision of one process: without a store, and while the store is unavailable. */
import { describe, expect, test } from "vitest";
import type { Amounts, Check } from "../contract.ts";
import { DAY_MS } from "./day.ts";
import { CONCURRENCY_RETRY_MS, type LimitExceeded, refusalOf } from "./decide.ts";
import { ScopeLedger } from "./ledger.ts";
import { concurrency, daily, NOON, NOTHING, rate, SCOPE } from "../testing.ts";

const DAY = "2026-11-21";
const ACCOUNT = "agent";

const tokens = (count: number): Amounts => ({ tokens: count, microUsd: 0, requests: 1 });

function create() {
  const scope = new ScopeLedger(SCOPE);
  let made = 0;
  const lease = (checks: readonly Check[], reserve: Amounts = NOTHING) => {
    const request = { id: `${made++}`, scope: SCOPE, accounts: [ACCOUNT], checks, reserve };
    return { request, lease: scope.lease(request, DAY) };
  };
  const hold = (checks: readonly Check[] = [], reserve: Amounts = NOTHING, now = NOON) => {
    const asked = lease(checks, reserve);
    scope.hold(asked.lease, asked.request, now);
    return asked.lease;
  };
  /** Returns the answer to a new call that asks for as much. */
  const ask = (
    checks: readonly Check[],
    asked: Amounts = NOTHING,
    now = NOON,
  ): LimitExceeded | undefined =>
    refusalOf(scope, checks, { lease: lease(checks, asked).lease, asked, now });
  return { scope, hold, ask };
}

describe("a rate", () => {
  test("is full at its limit, until the oldest call has left the window", () => {
    const { hold, ask } = create();
    const check = rate(2);
    hold([check]);
    expect(ask([check])).toBeUndefined();
    hold([check], NOTHING, NOON + 10);
    expect(ask([check], NOTHING, NOON + 20)).toEqual({
      kind: "refused",
      check,
      used: 2,
      reserved: 0,
      retryAfterMs: 60_000 - 20,
    });
    expect(ask([check], NOTHING, NOON + 60_000)).toBeUndefined();
  });

  test("of nothing admits nothing", () => {
    expect(create().ask([rate(0)])).toMatchObject({ used: 0, retryAfterMs: 60_000 });
  });
});

describe("concurrency", () => {
  test("is full at its limit, until a call ends", () => {
    const { scope, hold, ask } = create();
    const check = concurrency(2);
    hold();
    expect(ask([check])).toBeUndefined();
    const last = hold();
    expect(ask([check])).toEqual({
      kind: "refused",
      check,
      used: 0,
      reserved: 2,
      retryAfterMs: CONCURRENCY_RETRY_MS,
    });
    scope.release(last);
    expect(ask([check])).toBeUndefined();
  });
});

describe("a day's budget", () => {
  test("is reached by what is used here, used elsewhere, reserved and asked for together", () => {
    const { scope, hold, ask } = create();
    const account = scope.account(DAY, ACCOUNT);
    account.add({ ...tokens(10), unpriced: false });
    account.heard("tokens", 20);
    hold([], tokens(30));
    expect(ask([daily(100)], tokens(40))).toBeUndefined();
    expect(ask([daily(100)], tokens(41))).toEqual({
      kind: "refused",
      check: daily(100),
      used: 30,
      reserved: 30,
      retryAfterMs: DAY_MS / 2,
    });
  });

  test("has what a lease holds already count once when it asks for more", () => {
    const { scope, hold } = create();
    hold([], tokens(30));
    const lease = hold([], tokens(30));
    const raised = (count: number): LimitExceeded | undefined =>
      refusalOf(scope, [daily(100)], { lease, asked: tokens(count), now: NOON });
    expect(raised(70)).toBeUndefined();
    expect(raised(71)).toMatchObject({ used: 0, reserved: 30 });
  });

  test("gives no discount to a lease that is not held, or is held no more", () => {
    const { scope, hold, ask } = create();
    hold([], tokens(60));
    expect(ask([daily(100)], tokens(41))).toMatchObject({ reserved: 60 });
    const ended = hold([], tokens(40));
    scope.release(ended);
    const again = { lease: ended, asked: tokens(41), now: NOON };
    expect(refusalOf(scope, [daily(100)], again)).toMatchObject({ reserved: 60 });
  });
});

test("every check is looked at, and the first that refuses is reported", () => {
  const { hold, ask } = create();
  hold([rate(1)]);
  expect(ask([daily(1), concurrency(1), rate(1)])).toMatchObject({ check: concurrency(1) });
  expect(ask([daily(1), concurrency(2), rate(1)])).toMatchObject({ check: rate(1) });
  expect(ask([daily(1), concurrency(2), rate(2)])).toBeUndefined();
});
