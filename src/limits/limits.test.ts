/**
 * One contract for memory, Redis and a node of a Redis Cluster; two processes if there is a shared
 * store.
 */
import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { RedisServer } from "../../e2e/support/redis.ts";
import { until } from "../../e2e/support/wait.ts";
import type { Admission, AdmitRequest, Check, Lease } from "./contract.ts";
import { DAY_MS } from "./memory/day.ts";
import { parseRedisSettings } from "./redis/redis-options.ts";
import { FakeClock } from "../platform/testing.ts";
import {
  concurrency,
  daily,
  LimitingProcess,
  NOON,
  NOTHING,
  rate,
  rounds,
  SCOPE,
  used,
} from "./testing.ts";

interface Kind {
  readonly name: string;
  readonly start?: () => Promise<RedisServer>;
}

const KINDS: readonly Kind[] = [
  { name: "memory" },
  { name: "redis", start: () => RedisServer.start() },
  { name: "cluster", start: () => RedisServer.start({ cluster: true }) },
];

const LEASE_MS = 30_000;

describe.each(KINDS)("limits in $name", ({ start }) => {
  let server: RedisServer | undefined;
  let clock: FakeClock;
  let gateways: LimitingProcess[];

  beforeAll(async () => {
    server = await start?.();
  });

  afterAll(async () => {
    await server?.stop();
  });

  beforeEach(async () => {
    await server?.command("FLUSHALL");
    clock = new FakeClock(NOON);
    gateways = [];
    await another();
  });

  afterEach(async () => {
    await Promise.all(gateways.map(({ limits }) => limits.close()));
  });

  /** Starts a further process that shares the store; in memory there is only one process. */
  async function another(): Promise<LimitingProcess> {
    const [first] = gateways;
    if (first !== undefined && server === undefined) return first;
    const redis = server === undefined ? {} : { redis: parseRedisSettings({ url: server.url }) };
    const gateway = new LimitingProcess(clock, {
      ...redis,
      processId: randomUUID(),
      leaseMs: LEASE_MS,
    });
    gateways.push(gateway);
    await until(() => gateway.up(), { what: "the store to be used" });
    return gateway;
  }

  const first = (): LimitingProcess => gateways[0] as LimitingProcess;

  function request(
    checks: readonly Check[],
    tokens = 0,
    more: Partial<AdmitRequest> = {},
  ): AdmitRequest {
    return {
      id: randomUUID(),
      scope: SCOPE,
      accounts: ["agent"],
      checks,
      reserve: { tokens, microUsd: 0, requests: 1 },
      ...more,
    };
  }

  async function admitted(gateway: LimitingProcess, asked: AdmitRequest): Promise<Lease> {
    const admission = await gateway.limits.admit(asked);
    if (admission.kind !== "admitted") throw new Error(`refused: ${JSON.stringify(admission)}`);
    return admission.lease;
  }

  /** 200 callers at once, on two processes. */
  async function crowd(make: () => AdmitRequest): Promise<{
    readonly leases: readonly (readonly [LimitingProcess, Lease])[];
    readonly refused: number;
  }> {
    const both = [first(), await another()];
    const answers = await Promise.all(
      Array.from({ length: 200 }, async (_, index): Promise<[LimitingProcess, Admission]> => {
        const gateway = both[index % 2] as LimitingProcess;
        return [gateway, await gateway.limits.admit(make())];
      }),
    );
    const leases = answers.flatMap(([gateway, answer]) =>
      answer.kind === "admitted" ? [[gateway, answer.lease] as const] : [],
    );
    return { leases, refused: answers.length - leases.length };
  }

  const usage = async (gateway = first(), account = "agent") =>
    (await gateway.limits.usage([{ scope: SCOPE, account }]))[0];

  test("200 at the edge of a daily budget: never over, exact when settled", async () => {
    const { leases, refused } = await crowd(() => request([daily(1_000)], 30));
    expect(leases).toHaveLength(33);
    expect(refused).toBe(167);
    for (const [gateway, lease] of leases) gateway.limits.settle(lease, used(7, 11));
    await until(async () => (await usage())?.tokens === 33 * 7);
    for (const gateway of gateways) {
      expect(await usage(gateway)).toEqual({
        tokens: 231,
        microUsd: 363,
        requests: 33,
        unpricedRequests: 0,
        inFlight: 0,
      });
    }
    // The unused part of the reservation is free again: 769 are left.
    expect((await crowd(() => request([daily(1_000)], 30))).leases).toHaveLength(25);
  });

  test("200 at the edge of a cost just below 2^53", async () => {
    const each = 900_000_000_000_001;
    const { leases } = await crowd(() =>
      request([daily(10 * each + 1, "microUsd")], 0, {
        reserve: { tokens: 0, microUsd: each, requests: 1 },
      }),
    );
    expect(leases).toHaveLength(10);
    for (const [gateway, lease] of leases) gateway.limits.settle(lease, used(1, each));
    for (const gateway of gateways)
      await until(async () => (await usage(gateway))?.microUsd === 10 * each);
    expect(
      (
        await first().limits.admit(
          request([daily(10 * each, "microUsd")], 0, {
            reserve: { tokens: 0, microUsd: 1, requests: 1 },
          }),
        )
      ).kind,
    ).toBe("refused");
  });

  test("200 at the edge of requests a day", async () => {
    const { leases } = await crowd(() => request([daily(17, "requests")]));
    expect(leases).toHaveLength(17);
  });

  test("200 at the edge of a rate: the window slides exactly", async () => {
    await admitted(first(), request([rate(20)]));
    clock.advance(10_000);
    const { leases } = await crowd(() => request([rate(20)]));
    expect(leases).toHaveLength(19);
    for (const [gateway, lease] of leases) gateway.limits.settle(lease, NOTHING);
    clock.advance(49_999);
    const answer = await first().limits.admit(request([rate(20)]));
    expect(answer).toMatchObject({ kind: "refused", used: 20, retryAfterMs: 1 });
    clock.advance(1);
    expect((await crowd(() => request([rate(20)]))).leases).toHaveLength(1);
    expect(await first().limits.admit(request([rate(20)]))).toMatchObject({
      kind: "refused",
      retryAfterMs: 10_000,
    });
  });

  test("200 at the edge of concurrency: places are free when calls end", async () => {
    const { leases } = await crowd(() => request([concurrency(5)]));
    expect(leases).toHaveLength(5);
    expect(await first().limits.admit(request([concurrency(5)]))).toMatchObject({
      kind: "refused",
      used: 0,
      reserved: 5,
      retryAfterMs: 1_000,
    });
    for (const [gateway, lease] of leases.slice(0, 2)) gateway.limits.settle(lease, NOTHING);
    await until(async () => (await usage())?.inFlight === 3);
    expect((await crowd(() => request([concurrency(5)]))).leases).toHaveLength(2);
  });

  test("a refusal says what is used and reserved, until midnight UTC; the first check in order is told", async () => {
    const lease = await admitted(first(), request([], 40));
    first().limits.settle(lease, used(30));
    await admitted(first(), request([], 50));
    const tight = daily(100);
    const answer = await first().limits.admit(request([rate(9), tight, concurrency(1)], 21));
    expect(answer).toEqual({
      kind: "refused",
      check: tight,
      used: 30,
      reserved: 50,
      retryAfterMs: DAY_MS / 2,
    });
    expect((await first().limits.admit(request([daily(100)], 20))).kind).toBe("admitted");
  });

  test("who is refused takes nothing", async () => {
    for (let time = 0; time < 5; time++)
      expect((await first().limits.admit(request([rate(3), daily(10)], 11))).kind).toBe("refused");
    expect(await usage()).toMatchObject({ inFlight: 0, requests: 0 });
    for (let time = 0; time < 3; time++) await admitted(first(), request([rate(3), daily(10)], 1));
  });

  test("a failed call gives everything back, or all but the request", async () => {
    const one = await admitted(first(), request([daily(100)], 100));
    first().limits.settle(one, NOTHING);
    const two = await admitted(first(), request([daily(100), daily(1, "requests")], 100));
    first().limits.settle(two, used(0));
    expect(await first().limits.admit(request([daily(1, "requests")]))).toMatchObject({
      kind: "refused",
      used: 1,
      reserved: 0,
    });
    expect(await usage()).toMatchObject({ tokens: 0, requests: 1, inFlight: 0 });
  });

  test("settling twice counts once", async () => {
    const lease = await admitted(first(), request([daily(100)], 10));
    for (let time = 0; time < 3; time++) first().limits.settle(lease, used(5));
    expect(await usage()).toMatchObject({ tokens: 5, requests: 1, inFlight: 0 });
  });

  test("what was used above the reservation counts too", async () => {
    const lease = await admitted(first(), request([daily(100)], 10));
    first().limits.settle(lease, used(150));
    expect(await first().limits.admit(request([daily(100)]))).toMatchObject({
      kind: "refused",
      used: 150,
      reserved: 0,
    });
  });

  test("midnight: a call counts into the day in which it was admitted, and pins nothing of the next", async () => {
    clock.advance(DAY_MS / 2 - 1);
    const late = await admitted(first(), request([daily(100)], 100));
    expect(late.day).toBe("2026-11-21");
    expect(await first().limits.admit(request([daily(100)], 1))).toMatchObject({
      kind: "refused",
      retryAfterMs: 1,
    });
    clock.advance(1);
    const early = await admitted(await another(), request([daily(100)], 100));
    expect(early.day).toBe("2026-11-22");
    first().limits.settle(late, used(60));
    expect(await first().limits.admit(request([daily(100)], 1))).toMatchObject({
      kind: "refused",
      used: 0,
      reserved: 100,
    });
    expect(await usage()).toMatchObject({ tokens: 0, requests: 0, inFlight: 1 });
    clock.set(NOON);
    expect(await usage()).toMatchObject({ tokens: 60, requests: 1 });
    expect(await first().limits.admit(request([daily(100)], 41))).toMatchObject({
      kind: "refused",
      used: 60,
      reserved: 0,
    });
  });

  test("accounts of a scope have counters of their own, and a call may count on several", async () => {
    const both = {
      accounts: ["provider", "key/a"],
      checks: [daily(100, "tokens", "provider"), daily(50, "tokens", "key/a")],
    };
    const lease = await admitted(first(), request([], 40, both));
    expect(await first().limits.admit(request([], 20, both))).toMatchObject({
      kind: "refused",
      check: both.checks[1],
      reserved: 40,
    });
    first().limits.settle(lease, used(45));
    const other = {
      accounts: ["provider", "key/b"],
      checks: [daily(100, "tokens", "provider"), daily(50, "tokens", "key/b")],
    };
    await admitted(first(), request([], 50, other));
    expect(await first().limits.admit(request([], 6, other))).toMatchObject({
      check: other.checks[0],
      used: 45,
      reserved: 50,
    });
    expect(await usage(first(), "key/a")).toMatchObject({ tokens: 45, inFlight: 0 });
    expect(await usage(first(), "key/b")).toMatchObject({ tokens: 0, inFlight: 1 });
  });

  test("scopes and accounts with the store's own signs in their names are kept apart", async () => {
    const names = ["a|b", "a%7Cb", "{a}b", "a}b", "a b"];
    for (const [index, name] of names.entries()) {
      const asked = {
        scope: `agent/${name}`,
        accounts: [name],
        checks: [daily(100, "tokens", name)],
      };
      first().limits.settle(await admitted(first(), request([], 1, asked)), used(index + 1));
    }
    const usages = await first().limits.usage(
      names.map((name) => ({ scope: `agent/${name}`, account: name })),
    );
    expect(usages.map(({ tokens }) => tokens)).toEqual([1, 2, 3, 4, 5]);
    await admitted(first(), request([], 1, { accounts: ["a|b"] }));
    const parts = await first().limits.usage(
      ["a", "b", "a|b"].map((account) => ({ scope: SCOPE, account })),
    );
    expect(parts.map(({ inFlight }) => inFlight)).toEqual([0, 0, 1]);
  });

  test("what needed no admission is recorded, into its day", async () => {
    first().limits.record(SCOPE, ["agent"], { ...used(9, 8), unpriced: true }, clock.now());
    first().limits.record(SCOPE, ["agent"], used(100), clock.now() - DAY_MS);
    first().limits.record(SCOPE, ["agent"], used(100), clock.now() - 40 * DAY_MS);
    const other = await another();
    clock.advance(1_000);
    await until(async () => (await usage(other))?.tokens === 9);
    expect(await usage()).toEqual({
      tokens: 9,
      microUsd: 8,
      requests: 1,
      unpricedRequests: 1,
      inFlight: 0,
    });
    expect(await first().limits.admit(request([daily(10)], 2))).toMatchObject({
      kind: "refused",
      used: 9,
    });
    // Yesterday still counts: a call of yesterday may end today.
    clock.set(NOON - DAY_MS);
    for (const gateway of [first(), other])
      expect(await usage(gateway)).toMatchObject({ tokens: 100, requests: 1 });
    clock.set(NOON - 40 * DAY_MS);
    expect(await usage()).toMatchObject({ tokens: 0, requests: 0 });
  });

  test("usage is told in the order of the question, each subject by itself", async () => {
    const [a, b] = ["agent/default/a", "agent/default/b"];
    first().limits.record(a, ["agent"], used(1), clock.now());
    first().limits.record(b, ["agent", "key/x"], used(2), clock.now());
    await admitted(first(), request([], 1, { scope: a }));
    const subjects = [
      { scope: b, account: "key/x" },
      { scope: a, account: "agent" },
      { scope: b, account: "other" },
      { scope: b, account: "agent" },
      { scope: "agent/default/c", account: "agent" },
    ];
    const usages = await first().limits.usage(subjects);
    expect(usages.map(({ tokens, inFlight }) => [tokens, inFlight])).toEqual([
      [2, 0],
      [1, 1],
      [0, 0],
      [2, 0],
      [0, 0],
    ]);
    expect(await first().limits.usage([])).toEqual([]);
  });

  test("a lease that is settled, or that nobody holds, is neither raised nor settled", async () => {
    const lease = await admitted(first(), request([daily(100)], 10));
    first().limits.settle(lease, used(10));
    const amounts = { tokens: 1_000, microUsd: 0, requests: 1 };
    expect(first().limits.reserve(lease, [daily(100)], amounts)).toEqual({
      kind: "admitted",
      lease,
    });
    const strange: Lease = { id: "strange", scope: SCOPE, day: lease.day };
    expect(first().limits.reserve(strange, [daily(100)], amounts)).toEqual({
      kind: "admitted",
      lease: strange,
    });
    first().limits.settle(strange, used(50));
    expect(await usage()).toMatchObject({ tokens: 10, requests: 1, inFlight: 0 });
  });

  test("a clock that was set back leaves no window shut", async () => {
    for (let time = 0; time < 3; time++) await admitted(first(), request([rate(3)]));
    clock.set(NOON - 3_600_000);
    await admitted(first(), request([rate(3)]));
  });

  describe("raising what a lease has reserved", () => {
    const amounts = (tokens: number) => ({ tokens, microUsd: 0, requests: 1 });
    const shared = start !== undefined;

    test("200 at the edge of a daily budget: never over, exact when settled", async () => {
      const checks = [daily(1_000)];
      const { leases } = await crowd(() => request(checks));
      expect(leases).toHaveLength(200);
      const answers = await Promise.all(
        leases.map(async ([gateway, lease]) => gateway.limits.reserve(lease, checks, amounts(30))),
      );
      expect(answers.filter(({ kind }) => kind === "admitted")).toHaveLength(33);
      expect(answers.find(({ kind }) => kind === "refused")).toMatchObject({
        check: checks[0],
        used: 0,
        reserved: 990,
      });
      for (const [gateway, lease] of leases) gateway.limits.settle(lease, used(2));
      await until(async () => (await usage())?.tokens === 400);
      expect(await usage()).toMatchObject({ tokens: 400, requests: 200, inFlight: 0 });
      await admitted(await another(), request(checks, 600));
    });

    test("what a lease holds does not stand against it, and a refusal leaves it as it was", async () => {
      const checks = [daily(100)];
      const lease = await admitted(first(), request(checks, 60));
      expect(await first().limits.reserve(lease, checks, amounts(100))).toMatchObject({
        kind: "admitted",
      });
      expect(await first().limits.reserve(lease, checks, amounts(101))).toMatchObject({
        kind: "refused",
        reserved: 0,
      });
      const other = await another();
      expect(await other.limits.admit(request(checks, 1))).toMatchObject({ reserved: 100 });
      expect((await usage(other))?.inFlight).toBe(1);
      first().limits.settle(lease, NOTHING);
      await until(async () => (await usage(other))?.inFlight === 0);
      await admitted(other, request(checks, 100));
    });

    test("what is covered already asks nobody", async () => {
      const checks = [daily(100)];
      const lease = await admitted(first(), request(checks, 60));
      expect(first().limits.reserve(lease, checks, amounts(60))).toEqual({
        kind: "admitted",
        lease,
      });
    });

    test("rates and concurrency count a lease once", async () => {
      const checks = [rate(1), concurrency(1), daily(100)];
      const lease = await admitted(first(), request(checks));
      expect(await first().limits.reserve(lease, checks, amounts(50))).toMatchObject({
        kind: "admitted",
      });
    });

    test("a lease that is settled meanwhile holds nothing", async () => {
      const checks = [daily(100)];
      const lease = await admitted(first(), request(checks));
      const raising = first().limits.reserve(lease, checks, amounts(100));
      first().limits.settle(lease, NOTHING);
      await raising;
      const other = await another();
      await until(async () => (await other.limits.admit(request(checks, 100))).kind === "admitted");
    });

    test("far from limits the expected amount is held at once, near them what is certain", async () => {
      const checks = [daily(1_000)];
      const expecting = (tokens: number): AdmitRequest =>
        request(checks, 0, { expect: amounts(tokens) });
      const far = await admitted(first(), expecting(100));
      const other = await another();
      expect(await other.limits.admit(request(checks, 1_001))).toMatchObject({
        reserved: shared ? 100 : 0,
      });
      const answer = first().limits.reserve(far, checks, amounts(100));
      expect(answer instanceof Promise).toBe(false);
      await admitted(first(), expecting(50));
      expect(await other.limits.admit(request(checks, 1_001))).toMatchObject({ reserved: 100 });
    });

    test("what was raised is what a store learns that has lost it", async () => {
      if (server === undefined) return;
      const checks = [daily(100)];
      const lease = await admitted(first(), request(checks, 10));
      await first().limits.reserve(lease, checks, amounts(90));
      await server.command("FLUSHALL");
      clock.advance(LEASE_MS / 3);
      const other = await another();
      const left = async (): Promise<number> => {
        const answer = await other.limits.admit(request(checks, 101));
        return answer.kind === "refused" ? 100 - answer.reserved : 0;
      };
      await until(async () => (await left()) === 10);
    });
  });

  test("limits of 0 refuse all", async () => {
    expect(await first().limits.admit(request([rate(0)]))).toMatchObject({
      kind: "refused",
      retryAfterMs: 60_000,
    });
    expect((await first().limits.admit(request([concurrency(0)]))).kind).toBe("refused");
    expect((await first().limits.admit(request([daily(0, "requests")]))).kind).toBe("refused");
  });

  test("amounts that are no amounts do no harm", async () => {
    const lease = await admitted(first(), request([daily(100)], Number.NaN));
    first().limits.settle(lease, {
      tokens: -5,
      microUsd: Number.NaN,
      requests: 0.5,
      unpriced: false,
    });
    expect(await usage()).toEqual({
      tokens: 0,
      microUsd: 0,
      requests: 1,
      unpricedRequests: 0,
      inFlight: 0,
    });
    expect(await first().up()).toBe(true);
  });

  if (start === undefined) {
    test("without a store there is one warning, at the start, and nothing fails open", async () => {
      await crowd(() => request([daily(10)], 1));
      expect(first().lines).toMatchObject([
        { level: 40, msg: expect.stringContaining("no Redis is configured") as unknown },
      ]);
      expect(await first().metric("svc_store_fail_open_total")).toBe(0);
    });
    return;
  }

  test("a process that dies leaves leases that expire", async () => {
    const dead = await another();
    const asked = [daily(100), concurrency(1)];
    await admitted(dead, request(asked, 100));
    expect((await first().limits.admit(request(asked, 1))).kind).toBe("refused");
    // Dropped: these leases are neither renewed nor settled.
    const after = new FakeClock(NOON);
    after.advance(LEASE_MS - 1);
    const redis = parseRedisSettings({ url: (server as RedisServer).url });
    const survivor = new LimitingProcess(after, {
      redis,
      processId: randomUUID(),
      leaseMs: LEASE_MS,
    });
    gateways.push(survivor);
    await until(() => survivor.up());
    expect((await survivor.limits.admit(request(asked, 1))).kind).toBe("refused");
    after.advance(1);
    expect((await survivor.limits.admit(request(asked, 100))).kind).toBe("admitted");
  });

  test("a live call's lease is renewed for as long as it takes", async () => {
    const other = await another();
    const lease = await admitted(first(), request([concurrency(1)], 10));
    for (let passed = 0; passed < 4 * LEASE_MS; passed += LEASE_MS / 3) {
      clock.advance(LEASE_MS / 3);
      const expiry = clock.now() + LEASE_MS;
      await until(async () => (await leaseExpiry(lease.id)) === expiry, {
        what: "the lease to be renewed",
      });
      expect((await other.limits.admit(request([concurrency(1)]))).kind).toBe("refused");
    }
    first().limits.settle(lease, used(10));
    await until(async () => (await usage(other))?.inFlight === 0);
    expect((await other.limits.admit(request([concurrency(1)]))).kind).toBe("admitted");
  });

  test("a lease that the store has lost, or taken for dead, is there again when it is renewed", async () => {
    const other = await another();
    const lease = await admitted(first(), request([concurrency(1)], 10));
    await (server as RedisServer).command("FLUSHALL");
    clock.advance(LEASE_MS / 3);
    await until(async () => (await usage(other))?.inFlight === 1, {
      what: "the lease to be told again",
    });
    await allExpire();
    first().limits.settle(lease, used(10));
    await until(async () => (await usage(other))?.tokens === 10);
    expect(await usage(other)).toMatchObject({ inFlight: 0 });
  });

  test("a store that was flushed behind our back does not forget a budget", async () => {
    const other = await another();
    for (const gateway of [first(), other]) {
      gateway.limits.settle(await admitted(gateway, request([daily(100)], 10)), used(50));
      await until(
        async () =>
          ((await usage(gateway))?.tokens ?? 0) % 50 === 0 &&
          (await usage(gateway))?.inFlight === 0,
      );
    }
    await until(async () => (await usage())?.tokens === 100);
    await (server as RedisServer).command("FLUSHALL");
    first().limits.record(SCOPE, ["agent"], used(1), clock.now());
    expect(await usage()).toMatchObject({ tokens: 101 });
    expect(await other.limits.admit(request([daily(100)], 1))).toMatchObject({
      kind: "refused",
      used: 101,
    });
    expect(await first().limits.admit(request([daily(100)], 1))).toMatchObject({
      kind: "refused",
      used: 101,
    });
    await until(async () => (await storedTotal("tokens")) === 101, {
      what: "both to have told their totals again",
    });
  });

  test("more than one script should say at once is told in parts", async () => {
    const many = 1_201;
    for (let call = 0; call < many; call++)
      await admitted(first(), request([rate(many)], 1, { accounts: ["agent", `key/${call}`] }));
    first().limits.record(
      SCOPE,
      Array.from({ length: many }, (_, key) => `key/${key}`),
      used(2),
      clock.now(),
    );
    await (server as RedisServer).command("FLUSHALL");
    await (server as RedisServer).command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    const other = await another();
    await until(async () => (await usage(other))?.inFlight === many);
    await until(async () => (await usage(other, `key/${many - 1}`))?.tokens === 2);
    expect(await usage(other, "key/0")).toMatchObject({ tokens: 2, inFlight: 1 });
    expect(await other.limits.admit(request([rate(many)]))).toMatchObject({
      kind: "refused",
      used: many,
    });
  });

  test("a process that stops writes what is pending", async () => {
    const lease = await admitted(first(), request([daily(100)], 10));
    const other = await another();
    first().limits.record(SCOPE, ["agent"], used(1), clock.now());
    first().limits.settle(lease, used(2));
    await first().limits.close();
    expect(await usage(other)).toMatchObject({ tokens: 3, requests: 2, inFlight: 0 });
  });

  test("far from all limits, calls that end within 5 ms are told together", async () => {
    const leases = await Promise.all(
      Array.from({ length: 10 }, () =>
        admitted(first(), request([daily(10_000), concurrency(100)], 1)),
      ),
    );
    const before = await scriptsRun();
    for (const lease of leases) {
      first().limits.settle(lease, used(3));
      await rounds();
    }
    expect(await scriptsRun()).toBe(before);
    clock.advance(5);
    await until(async () => (await storedTotal("tokens")) === 30, {
      what: "the totals to be told",
    });
    expect(await scriptsRun()).toBe(before + 1);
    expect(await usage(await another())).toMatchObject({ tokens: 30, requests: 10, inFlight: 0 });
  });

  test("near a limit, a call that ends frees its place for other processes at once", async () => {
    const other = await another();
    const lease = await admitted(first(), request([concurrency(1)]));
    expect((await other.limits.admit(request([concurrency(1)]))).kind).toBe("refused");
    first().limits.settle(lease, used(1));
    await until(async () => (await leaseExpiry(lease.id)) === 0, {
      what: "the lease to be given back",
    });
    expect((await other.limits.admit(request([concurrency(1)]))).kind).toBe("admitted");
  });

  test.each([
    ["a daily budget", daily(100), 30, 80],
    ["concurrency", concurrency(4), 0, 0],
  ])(
    "what has ended here refuses nothing here, told or not: %s",
    async (_name, check, small, large) => {
      const leases = check.kind === "concurrency" ? 2 : 1;
      const held = [];
      for (let lease = 0; lease < leases; lease++)
        held.push(await admitted(first(), request([check], small)));
      for (const lease of held) first().limits.settle(lease, NOTHING);
      const asked = check.kind === "concurrency" ? 4 : 1;
      for (let admission = 0; admission < asked; admission++)
        await admitted(first(), request([check], large));
      expect((await first().limits.admit(request([check], large))).kind).toBe("refused");
    },
  );

  test("every key has a time to live, and the scope as its hash tag", async () => {
    const everything = [
      rate(9),
      concurrency(9),
      daily(99),
      daily(9, "requests"),
      daily(9, "microUsd"),
    ];
    first().limits.settle(await admitted(first(), request(everything, 10)), used(5));
    await admitted(first(), request(everything, 10));
    await usage();
    const keys = (await (server as RedisServer).command("KEYS", "*")) as string[];
    const ours = keys.filter((key) => !key.startsWith("svc:{probe/"));
    expect(
      ours.map((key) => key.replace(/^svc:\{agent\/default\/researcher\}:/, "")).toSorted(),
    ).toEqual(["amounts", "leases", "reserved", "usage:2026-11-21", "window:60000:agent"]);
    await allExpire();
  });

  test("a write that comes late takes nothing away again", async () => {
    const processId = randomUUID();
    const redis = parseRedisSettings({ url: (server as RedisServer).url });
    for (const tokens of [100, 60]) {
      // The second process reports what the first reported long before: the same process id, with
      // less usage.
      const gateway = new LimitingProcess(clock, { redis, processId });
      await until(() => gateway.up());
      gateway.limits.record(SCOPE, ["agent"], used(tokens), clock.now());
      await gateway.limits.close();
    }
    expect(await usage()).toMatchObject({ tokens: 100, requests: 1 });
  });

  test("scripts that the server has forgotten are sent again", async () => {
    await admitted(first(), request([daily(100)], 1));
    await (server as RedisServer).command("SCRIPT", "FLUSH");
    await admitted(first(), request([daily(100)], 1));
    expect(await first().metric("svc_store_fail_open_total")).toBe(0);
  });

  async function allExpire(): Promise<void> {
    const redis = server as RedisServer;
    for (const key of (await redis.command("KEYS", "*")) as string[])
      expect(await redis.command("PTTL", key), key).toBeGreaterThan(0);
  }

  /** Returns the number of scripts that the server has run. */
  async function scriptsRun(): Promise<number> {
    const stats = String(await (server as RedisServer).command("INFO", "commandstats"));
    return [...stats.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g)].reduce(
      (sum, [, calls]) => sum + Number(calls),
      0,
    );
  }

  async function leaseExpiry(id: string): Promise<number> {
    return Number(await (server as RedisServer).command("ZSCORE", `svc:{${SCOPE}}:leases`, id));
  }

  async function storedTotal(unit: "tokens"): Promise<number> {
    return Number(
      await (server as RedisServer).command(
        "HGET",
        `svc:{${SCOPE}}:usage:2026-11-21`,
        `agent|${unit.slice(0, 1)}`,
      ),
    );
  }
});
