/** Limits of one process, without a store. */
import { pino } from "pino";
import { Registry } from "prom-client";
import { beforeEach, describe, expect, test } from "vitest";
import { FakeClock } from "../../platform/testing.ts";
import type { AccountUsage, Admission, AdmitRequest, Lease, Limits } from "../contract.ts";
import { DAY_MS } from "./day.ts";
import { createLimits } from "../limits.ts";

const SCOPE = "agent/default/a";
const USED = { tokens: 7, microUsd: 9, requests: 1, unpriced: false };

let clock: FakeClock;
let registry: Registry;
let limits: Limits;

beforeEach(() => {
  clock = new FakeClock(Date.UTC(2026, 0, 31, 12));
  registry = new Registry();
  limits = createLimits({ clock, registry, log: pino({ level: "silent" }), processId: "p" });
});

function admit(more: Partial<AdmitRequest> = {}): Admission {
  const admission = limits.admit({
    id: "call-1",
    scope: SCOPE,
    accounts: ["agent"],
    checks: [{ kind: "daily", account: "agent", unit: "tokens", limit: 100 }],
    reserve: { tokens: 60, microUsd: 0, requests: 1 },
    ...more,
  });
  if (admission instanceof Promise) throw new Error("A store was asked.");
  return admission;
}

function leaseOf(admission: Admission): Lease {
  if (admission.kind !== "admitted") throw new Error(JSON.stringify(admission));
  return admission.lease;
}

async function usage(): Promise<AccountUsage | undefined> {
  return (await limits.usage([{ scope: SCOPE, account: "agent" }]))[0];
}

test("nothing waits for a store, and nothing counts as let in without one", async () => {
  const lease = leaseOf(admit());
  await limits.reserve(lease, [], { tokens: 70, microUsd: 0, requests: 1 });
  limits.settle(lease, USED);
  expect(clock.pending).toEqual([]);
  const metrics = await registry.getMetricsAsJSON();
  const opened = metrics.find(({ name }) => name.includes("open"));
  expect(opened?.values.map(({ value }) => value)).toEqual([0]);
  await limits.close();
});

describe("a lease", () => {
  test("counts until it is settled, and once", async () => {
    const lease = leaseOf(admit());
    expect(admit({ id: "call-2" })).toMatchObject({ kind: "refused", used: 0, reserved: 60 });
    expect(await usage()).toMatchObject({ tokens: 0, inFlight: 1 });
    limits.settle(lease, USED);
    limits.settle(lease, USED);
    expect(await usage()).toEqual({
      tokens: 7,
      microUsd: 9,
      requests: 1,
      unpricedRequests: 0,
      inFlight: 0,
    });
    expect(admit({ id: "call-2" }).kind).toBe("admitted");
  });

  test("is raised within the limit, and not above it", async () => {
    const lease = leaseOf(admit());
    const checks = [{ kind: "daily", account: "agent", unit: "tokens", limit: 100 }] as const;
    const raise = (tokens: number): Admission | Promise<Admission> =>
      limits.reserve(lease, checks, { tokens, microUsd: 0, requests: 1 });
    expect(await raise(101)).toMatchObject({ kind: "refused", reserved: 0 });
    expect(await raise(100)).toMatchObject({ kind: "admitted" });
    expect(admit({ id: "2", reserve: { tokens: 1, microUsd: 0, requests: 0 } })).toMatchObject({
      kind: "refused",
      reserved: 100,
    });
    // It is not lowered, and a settled one holds nothing.
    expect(await raise(10)).toMatchObject({ kind: "admitted" });
    limits.settle(lease, { ...USED, tokens: 0 });
    expect(await raise(1_000)).toMatchObject({ kind: "admitted" });
    expect(admit({ id: "3", reserve: { tokens: 100, microUsd: 0, requests: 0 } }).kind).toBe(
      "admitted",
    );
  });

  test("of another kind is left alone", async () => {
    const other: Lease = { id: "x", scope: SCOPE, day: "2026-01-31" };
    limits.settle(other, USED);
    expect(await limits.reserve(other, [], USED)).toEqual({ kind: "admitted", lease: other });
    expect(await usage()).toMatchObject({ tokens: 0, requests: 0 });
  });
});

describe("what needed no admission", () => {
  test.each([
    ["today", 0, 7],
    ["yesterday: in its own day", DAY_MS, 0],
    ["long ago", 3 * DAY_MS, 0],
  ])("is counted %s", async (_name, ago, tokens) => {
    limits.record(SCOPE, ["agent", "key/k"], USED, clock.now() - ago);
    expect(await usage()).toMatchObject({ tokens, inFlight: 0 });
  });
});

test("usage is told in the order of the question, over several scopes", async () => {
  limits.record(SCOPE, ["agent"], USED, clock.now());
  limits.record("external/default/p", ["provider"], { ...USED, tokens: 3 }, clock.now());
  const answers = await limits.usage([
    { scope: "external/default/p", account: "provider" },
    { scope: SCOPE, account: "agent" },
    { scope: "external/default/p", account: "key/none" },
  ]);
  expect(answers.map(({ tokens }) => tokens)).toEqual([3, 7, 0]);
});

test("a day's usage is no other day's", async () => {
  limits.settle(leaseOf(admit()), { ...USED, tokens: 90 });
  expect(admit({ id: "2" }).kind).toBe("refused");
  clock.advance(DAY_MS);
  expect(await usage()).toMatchObject({ tokens: 0 });
  expect(admit({ id: "3" }).kind).toBe("admitted");
});

test.each([
  ["yesterday", 1, 7],
  ["the day before: no budget counts it any more", 2, 0],
])("what was used %s", async (_name, days, tokens) => {
  const day = clock.now() - days * DAY_MS;
  limits.record(SCOPE, ["agent"], USED, day);
  clock.set(day);
  expect(await usage()).toMatchObject({ tokens });
});

test("days that no budget counts any more are forgotten, and days with calls under way are not", async () => {
  const start = clock.now();
  const lease = leaseOf(admit());
  limits.record("external/default/p", ["provider"], USED, start);
  clock.advance(3 * DAY_MS);
  leaseOf(admit({ id: "call-2" }));
  limits.settle(lease, USED);
  clock.set(start);
  expect(await usage()).toMatchObject({ tokens: 7, inFlight: 1 });
  const [forgotten] = await limits.usage([{ scope: "external/default/p", account: "provider" }]);
  expect(forgotten).toMatchObject({ tokens: 0 });
});

test("a raise is checked against daily limits alone", async () => {
  const rate = { kind: "rate", account: "agent", limit: 1, windowMs: 60_000 } as const;
  const concurrency = { kind: "concurrency", account: "agent", limit: 1 } as const;
  const lease = leaseOf(admit({ checks: [rate, concurrency] }));
  const more = { tokens: 70, microUsd: 0, requests: 1 };
  expect(await limits.reserve(lease, [rate, concurrency], more)).toMatchObject({
    kind: "admitted",
  });
  expect(admit({ id: "2", checks: [rate] })).toMatchObject({ kind: "refused", check: rate });
});
