/** The knowledge of a scope in one process, and when it is forgotten. */
import { describe, expect, test } from "vitest";
import type { AdmitRequest } from "../contract.ts";
import { DAY_MS, utcDay } from "./day.ts";
import type { HeldLease } from "./held-lease.ts";
import { Ledger, type ScopeLedger } from "./ledger.ts";

const NOW = Date.UTC(2026, 0, 31, 12);
const MINUTE_MS = 60_000;
const SCOPE = "agent/default/a";

const today = utcDay(NOW);
const yesterday = utcDay(NOW - DAY_MS);
const before = utcDay(NOW - 2 * DAY_MS);

function request(more: Partial<AdmitRequest> = {}): AdmitRequest {
  return {
    id: "call-1",
    scope: SCOPE,
    accounts: ["agent"],
    checks: [{ kind: "rate", account: "agent", limit: 5, windowMs: MINUTE_MS }],
    reserve: { tokens: 10, microUsd: 20, requests: 1 },
    ...more,
  };
}

function held(scope: ScopeLedger, day: string, more: Partial<AdmitRequest> = {}): HeldLease {
  const asked = request(more);
  const lease = scope.lease(asked, day);
  scope.hold(lease, asked, NOW);
  return lease;
}

const used = (day: string, scope: ScopeLedger): number => scope.account(day, "agent").own.tokens;

function use(scope: ScopeLedger, day: string): void {
  scope.account(day, "agent").add({ tokens: 7, microUsd: 0, requests: 0, unpriced: false });
}

describe("a lease that is held", () => {
  test("is reserved in each of its accounts, and is in its window", () => {
    const scope = new Ledger().scope(SCOPE);
    held(scope, today, { accounts: ["agent", "key/k"] });
    for (const name of ["agent", "key/k"]) {
      expect(scope.account(today, name).reserved).toEqual({
        tokens: 10,
        microUsd: 20,
        requests: 1,
      });
      expect(scope.account(today, name).leases).toBe(1);
      expect(scope.inFlight(name)).toBe(1);
    }
    expect(scope.inFlight("other")).toBe(0);
    expect(scope.window("agent", MINUTE_MS).count(NOW)).toBe(1);
    expect(scope.window("agent", 2 * MINUTE_MS).count(NOW)).toBe(0);
    expect(scope.window("key/k", MINUTE_MS).count(NOW)).toBe(0);
  });

  test("is in no window of a check that does not count a rate", () => {
    const scope = new Ledger().scope(SCOPE);
    held(scope, today, { checks: [{ kind: "concurrency", account: "agent", limit: 1 }] });
    expect(scope.window("agent", MINUTE_MS).count(NOW)).toBe(0);
  });

  test("reserves what it is resized to, up or down", () => {
    const scope = new Ledger().scope(SCOPE);
    const lease = held(scope, today);
    for (const amounts of [
      { tokens: 50, microUsd: 60, requests: 2 },
      { tokens: 5, microUsd: 0, requests: 1 },
    ]) {
      scope.resize(lease, amounts);
      expect(scope.account(today, "agent").reserved).toEqual(amounts);
    }
  });

  test("reserves nothing once it is released; its place in the window stays", () => {
    const scope = new Ledger().scope(SCOPE);
    const [one, two] = [held(scope, today), held(scope, today, { id: "call-2" })];
    scope.release(one);
    expect(one.settled).toBe(true);
    expect([...scope.leases.keys()]).toEqual([two.id]);
    expect(scope.inFlight("agent")).toBe(1);
    scope.release(two);
    expect(scope.inFlight("agent")).toBe(0);
    expect(scope.account(today, "agent")).toMatchObject({
      reserved: { tokens: 0, microUsd: 0, requests: 0 },
      leases: 0,
    });
    expect(scope.window("agent", MINUTE_MS).count(NOW)).toBe(2);
  });
});

test("a store that may have lost data is told every lease, recent total and admission", () => {
  const scope = new Ledger().scope(SCOPE);
  const lease = held(scope, today);
  for (const day of [before, yesterday, today]) use(scope, day);
  scope.outbox.admissions.push({
    window: scope.window("agent", MINUTE_MS),
    entry: { id: "stale", at: NOW },
  });
  scope.tellEverything(yesterday, NOW);
  expect([...scope.outbox.live]).toEqual([lease]);
  expect([...scope.outbox.totals].map(({ day }) => day).toSorted()).toEqual([yesterday, today]);
  expect(scope.outbox.admissions.map(({ entry }) => entry.id)).toEqual(["call-1"]);
});

describe("once a day", () => {
  test("days before yesterday are forgotten", () => {
    const ledger = new Ledger();
    const scope = ledger.scope(SCOPE);
    for (const day of [before, yesterday, today]) use(scope, day);
    ledger.pruneDaily(NOW);
    expect(ledger.scope(SCOPE)).toBe(scope);
    expect([...scope.accounts()].map(({ day }) => day)).toEqual([yesterday, today]);
    expect(used(yesterday, scope)).toBe(7);
  });

  test("a day is kept while one of its accounts has a call under way", () => {
    const ledger = new Ledger();
    const scope = ledger.scope(SCOPE);
    use(scope, before);
    const lease = held(scope, before, { accounts: ["key/k"] });
    ledger.pruneDaily(NOW);
    expect(used(before, scope)).toBe(7);
    scope.release(lease);
    ledger.pruneDaily(NOW + DAY_MS);
    expect(used(before, scope)).toBe(0);
  });

  test("windows are kept until they are empty", () => {
    const scope = new Ledger().scope(SCOPE);
    const lease = held(scope, today);
    scope.release(lease);
    const window = scope.window("agent", MINUTE_MS);
    scope.prune(yesterday, NOW);
    expect(scope.window("agent", MINUTE_MS)).toBe(window);
    scope.prune(yesterday, NOW + MINUTE_MS);
    expect(scope.window("agent", MINUTE_MS)).not.toBe(window);
  });

  test.each<[name: string, keep: (scope: ScopeLedger) => void]>([
    ["today's usage", (scope) => use(scope, today)],
    ["a window", (scope) => scope.window("agent", MINUTE_MS).add({ id: "1", at: NOW })],
    ["a call under way", (scope) => scope.leases.set("1", scope.lease(request(), today))],
    [
      "a call that no account counts",
      (scope) => void held(scope, today, { accounts: [], checks: [] }),
    ],
    ["a question to the store", (scope) => (scope.asking = 1)],
    ["what the store does not have", (scope) => scope.outbox.ended.add("1")],
  ])("a scope is kept for %s", (_name, keep) => {
    const ledger = new Ledger();
    const scope = ledger.scope(SCOPE);
    keep(scope);
    ledger.pruneDaily(NOW);
    expect([...ledger.scopes()]).toEqual([scope]);
  });

  test("a scope with nothing is forgotten, and not twice on a day", () => {
    const ledger = new Ledger();
    ledger.scope("empty");
    ledger.pruneDaily(NOW);
    expect([...ledger.scopes()]).toEqual([]);
    ledger.scope("empty");
    ledger.pruneDaily(NOW + 1);
    expect([...ledger.scopes()]).toHaveLength(1);
    ledger.pruneDaily(NOW + DAY_MS);
    expect([...ledger.scopes()]).toEqual([]);
  });
});
