/**
 * The store killed, stopped, emptied, slow, full, and inaccessible: no request waits for it, and
 * the counts are correct afterwards.
 */
import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { RedisServer, type RedisServerOptions, TcpProxy } from "../../../e2e/support/redis.ts";
import { until } from "../../../e2e/support/wait.ts";
import type { Admission, Check, Lease } from "../contract.ts";
import { type LimitsOptions } from "../limits.ts";
import { parseRedisSettings } from "./redis-options.ts";
import { FakeClock } from "../../platform/testing.ts";
import {
  NOON,
  concurrency,
  daily,
  LimitingProcess,
  NOTHING,
  pass,
  rate,
  rounds,
  SCOPE,
  used,
} from "../testing.ts";

const TIMEOUT_MS = 40;
/** More than a probe's interval. */
const STEP_MS = 250;
const LEASE_MS = 30_000;

let clock: FakeClock;
let cleanups: (() => Promise<void>)[];

beforeEach(() => {
  clock = new FakeClock(NOON);
  cleanups = [];
});

afterEach(async () => {
  // A process stopped by a test must not block the cleanup.
  for (const cleanup of cleanups.toReversed()) await cleanup();
});

async function redis(options: RedisServerOptions = {}): Promise<RedisServer> {
  const server = await RedisServer.start(options);
  cleanups.push(() => server.stop());
  return server;
}

async function proxyOf(server: RedisServer): Promise<TcpProxy> {
  const proxy = await TcpProxy.start(server.port);
  cleanups.push(() => proxy.stop());
  return proxy;
}

function gatewayAt(url: string, options: Partial<LimitsOptions> = {}): LimitingProcess {
  const gateway = new LimitingProcess(clock, {
    redis: parseRedisSettings({ url }),
    processId: randomUUID(),
    admitTimeoutMs: TIMEOUT_MS,
    random: () => 0,
    ...options,
  });
  cleanups.push(async () => {
    const closed = gateway.limits.close();
    clock.advance(1_000);
    await closed;
  });
  return gateway;
}

async function gatewayOn(url: string): Promise<LimitingProcess> {
  const gateway = gatewayAt(url);
  await until(() => gateway.up(), { what: "the store to be used" });
  return gateway;
}

const ask = (gateway: LimitingProcess, checks: readonly Check[], tokens = 0): Promise<Admission> =>
  Promise.resolve(
    gateway.limits.admit({
      id: randomUUID(),
      scope: SCOPE,
      accounts: ["agent"],
      checks,
      reserve: { tokens, microUsd: 0, requests: 1 },
    }),
  );

async function admitted(
  gateway: LimitingProcess,
  checks: readonly Check[],
  tokens = 0,
): Promise<Lease> {
  const admission = await ask(gateway, checks, tokens);
  if (admission.kind !== "admitted") throw new Error(`refused: ${JSON.stringify(admission)}`);
  return admission.lease;
}

const usage = async (gateway: LimitingProcess) =>
  (await gateway.limits.usage([{ scope: SCOPE, account: "agent" }]))[0];

/** Advances time until all gateways use the store again. */
async function back(...gateways: readonly LimitingProcess[]): Promise<void> {
  for (const gateway of gateways) {
    await until(
      async () => {
        if (await gateway.up()) return true;
        clock.advance(STEP_MS);
        return false;
      },
      { what: "the store to be used again" },
    );
  }
}

/** Returns the value in the store. */
async function stored(server: RedisServer, field: string): Promise<number> {
  return Number(await server.command("HGET", `svc:{${SCOPE}}:usage:2026-11-21`, field));
}

const leases = async (server: RedisServer): Promise<number> =>
  Number(await server.command("ZCARD", `svc:{${SCOPE}}:leases`));

test("killed and restarted empty: decided at once meanwhile, and all is counted after, of every process", async () => {
  const server = await redis();
  const [a, b] = [await gatewayOn(server.url), await gatewayOn(server.url)];
  const checks = [daily(1_000)];
  a.limits.settle(await admitted(a, checks, 10), used(100));
  b.limits.settle(await admitted(b, checks, 10), used(200));
  const acrossOutage = await admitted(a, checks, 50);
  await pass(clock, 10);
  await until(async () => (await stored(server, "agent|t")) === 300);
  // Both processes know each other's usage.
  for (const gateway of [a, b]) expect(await usage(gateway)).toMatchObject({ tokens: 300 });

  await server.kill();
  await until(async () => !(await a.up()) && !(await b.up()));
  a.limits.settle(acrossOutage, used(60));
  const meanwhile = await admitted(b, checks, 10);
  b.limits.settle(meanwhile, used(7));
  const stillOpen = await admitted(b, checks, 10);
  a.limits.record(SCOPE, ["agent"], used(3), clock.now());
  // The budget is not reset because the store is unavailable: A has used 163 of 1000 and knows of
  // B's 200.
  expect(await ask(a, checks, 638)).toMatchObject({ kind: "refused", used: 363 });
  await until(() => a.warnings.length > 0 && b.warnings.length > 0);

  await server.restart();
  await back(a, b);
  await until(async () => (await stored(server, "agent|t")) === 370, {
    what: "all totals to be told",
  });
  for (const gateway of [a, b])
    expect(await usage(gateway)).toMatchObject({ tokens: 370, requests: 5, inFlight: 1 });
  expect(await ask(a, checks, 621)).toMatchObject({ kind: "refused", used: 370, reserved: 10 });
  b.limits.settle(stillOpen, used(10));
  await pass(clock, 10);
  await until(async () => (await leases(server)) === 0);
  expect(await usage(a)).toMatchObject({ tokens: 380, inFlight: 0 });
  for (const gateway of [a, b]) {
    expect(gateway.warnings).toHaveLength(1);
    expect(gateway.warnings[0]?.["reason"]).toContain("ECONNREFUSED");
  }
});

test("stopped: one admission waits for its deadline, the next do not wait; what was sent is not counted twice", async () => {
  const server = await redis();
  const gateway = await gatewayOn(server.url);
  const checks = [daily(100), concurrency(9), rate(9)];
  await admitted(gateway, checks, 10);
  server.pause();
  let decided = false;
  const waiting = ask(gateway, checks, 10).finally(() => (decided = true));
  await pass(clock, TIMEOUT_MS - 10);
  expect(decided).toBe(false);
  await pass(clock, 10);
  // The store has not answered: the decision is made without it.
  const first = await waiting;
  const second = await ask(gateway, checks, 10);
  expect([first.kind, second.kind]).toEqual(["admitted", "admitted"]);
  expect(await gateway.metric("svc_store_fail_open_total")).toBe(2);
  expect(gateway.warnings.map(({ reason }) => reason)).toEqual(["no answer in 40 ms"]);
  if (first.kind === "admitted") gateway.limits.settle(first.lease, used(4));

  server.resume();
  await back(gateway);
  await until(async () => (await stored(server, "agent|t")) === 4 && (await leases(server)) === 2);
  expect(await usage(gateway)).toMatchObject({ tokens: 4, requests: 1, inFlight: 2 });
  // Three admissions are in the window, once each.
  expect(await ask(gateway, [rate(3)])).toMatchObject({ kind: "refused", used: 3 });
  expect(gateway.warnings).toHaveLength(1);
});

test("answers that come seconds late hold nobody up; an admission that was refused meanwhile is taken back", async () => {
  const server = await redis();
  const proxy = await proxyOf(server);
  const gateway = await gatewayOn(`redis://127.0.0.1:${proxy.port}`);
  const one = await admitted(gateway, [concurrency(2), rate(9)]);
  proxy.hold();
  // The store is asked about both, and admits one more because it has room; memory decides, in this
  // order.
  const answers = [
    ask(gateway, [concurrency(2), rate(9)]),
    ask(gateway, [concurrency(2), rate(9)]),
  ];
  await until(() => proxy.held > 0, { what: "the answers to be on their way" });
  await pass(clock, TIMEOUT_MS);
  const kinds = (await Promise.all(answers)).map(({ kind }) => kind);
  expect(kinds).toEqual(["admitted", "refused"]);
  gateway.limits.settle(one, NOTHING);
  proxy.release();
  await back(gateway);
  await until(async () => (await leases(server)) === 1);
  expect(await usage(gateway)).toMatchObject({ inFlight: 1 });
  expect(await ask(gateway, [rate(2)])).toMatchObject({ kind: "refused", used: 2 });
});

test("what the store admitted late, and memory refused, is given back there", async () => {
  const server = await redis();
  const proxy = await proxyOf(server);
  const gateway = await gatewayOn(`redis://127.0.0.1:${proxy.port}`);
  const held = await admitted(gateway, [concurrency(1)]);
  // Its process considers it live, the store does not: the store admits one more.
  await server.command(
    "DEL",
    `svc:{${SCOPE}}:leases`,
    `svc:{${SCOPE}}:amounts`,
    `svc:{${SCOPE}}:reserved`,
  );
  proxy.hold();
  const asked = ask(gateway, [concurrency(1), rate(9)]);
  await until(() => proxy.held > 0);
  await pass(clock, TIMEOUT_MS);
  expect((await asked).kind).toBe("refused");
  expect(await leases(server)).toBe(1);
  gateway.limits.settle(held, NOTHING);
  proxy.release();
  await back(gateway);
  await until(async () => (await leases(server)) === 0, {
    what: "the late admission to be taken back",
  });
  await until(
    async () => (await server.command("ZCARD", `svc:{${SCOPE}}:window:60000:agent`)) === 0,
  );
});

test("a settling that was lost with its connection is told again", async () => {
  const server = await redis();
  const proxy = await proxyOf(server);
  const gateway = await gatewayOn(`redis://127.0.0.1:${proxy.port}`);
  const lease = await admitted(gateway, [daily(100)], 10);
  proxy.swallows = true;
  gateway.limits.settle(lease, used(6));
  // It is in transit when the connection breaks.
  await rounds();
  proxy.cut();
  proxy.swallows = false;
  await until(async () => (await leases(server)) === 0, { what: "the lease to be taken away" });
  expect(await stored(server, "agent|t")).toBe(6);
  expect(await server.command("EXISTS", `svc:{${SCOPE}}:reserved`)).toBe(0);
});

test("what is counted while the store is told what it missed is told at the end of it", async () => {
  const server = await redis();
  const proxy = await proxyOf(server);
  const gateway = await gatewayOn(`redis://127.0.0.1:${proxy.port}`);
  proxy.hold();
  const asked = ask(gateway, [daily(100)], 1);
  await until(() => proxy.held > 0);
  await pass(clock, TIMEOUT_MS);
  await asked;
  let records = 0;
  // At each answer during recovery, of a probe or of a write, something more is counted.
  await until(async () => {
    if (await gateway.up()) return true;
    if (proxy.held > 0) {
      gateway.limits.record(SCOPE, ["agent"], used(1), clock.now());
      records++;
      proxy.release();
      proxy.hold();
    } else if (
      records === 0 ||
      (await server.command("HEXISTS", `svc:{${SCOPE}}:usage:2026-11-21`, "agent|t")) === 0
    ) {
      clock.advance(STEP_MS);
    }
    return false;
  });
  proxy.release();
  await until(async () => (await stored(server, "agent|t")) === records, {
    what: "the last record to be told, though no time passes",
  });
});

test("a store that stays slow is not used: it answers, but not in time", async () => {
  const server = await redis();
  const proxy = await proxyOf(server);
  const gateway = await gatewayOn(`redis://127.0.0.1:${proxy.port}`);
  proxy.hold();
  const asked = ask(gateway, [daily(10)], 1);
  await until(() => proxy.held > 0);
  await pass(clock, TIMEOUT_MS);
  await asked;
  proxy.release();
  proxy.hold();
  for (let probes = 0; probes < 8; probes++) {
    await until(
      () => {
        if (proxy.held > 0) return true;
        clock.advance(STEP_MS);
        return false;
      },
      { what: "a probe's answer to be held" },
    );
    // Longer than a request would wait.
    await pass(clock, TIMEOUT_MS);
    proxy.release();
    proxy.hold();
    expect(await gateway.up()).toBe(false);
  }
  expect((await ask(gateway, [daily(10)], 1)).kind).toBe("admitted");
  proxy.release();
  await back(gateway);
  expect(gateway.warnings).toHaveLength(1);
});

test("full: errors of the store are an outage, with the reason in the one warning", async () => {
  const server = await redis();
  const gateway = await gatewayOn(server.url);
  const checks = [daily(100)];
  const lease = await admitted(gateway, checks, 10);
  await server.command("CONFIG", "SET", "maxmemory", "1");
  expect((await ask(gateway, checks, 10)).kind).toBe("admitted");
  gateway.limits.settle(lease, used(30));
  expect(await ask(gateway, checks, 61)).toMatchObject({ kind: "refused", used: 30, reserved: 10 });
  clock.advance(STEP_MS);
  expect(gateway.warnings.map(({ reason }) => reason)).toEqual([
    "OOM: its memory is full: raise maxmemory",
  ]);
  await server.command("CONFIG", "SET", "maxmemory", "0");
  await back(gateway);
  expect(await usage(gateway)).toMatchObject({ tokens: 30, inFlight: 1 });
  expect(gateway.warnings).toHaveLength(1);
});

test("read-only: it answers PING and is away all the same", async () => {
  const server = await redis();
  const gateway = await gatewayOn(server.url);
  await server.command("REPLICAOF", "127.0.0.1", "1");
  expect((await ask(gateway, [daily(100)], 10)).kind).toBe("admitted");
  expect(gateway.warnings[0]?.["reason"]).toMatch(/READONLY: it is a replica/);
  await server.command("REPLICAOF", "NO", "ONE");
  const before = await gateway.probes();
  for (const good of [1, 2]) {
    clock.advance(STEP_MS);
    await until(async () => (await gateway.probes()) === before + good);
    expect(await gateway.up()).toBe(false);
  }
  await back(gateway);
  expect(gateway.warnings).toHaveLength(1);
});

test.each([
  {
    name: "a wrong password",
    password: "not-the-secret",
    reason: "WRONGPASS: the user or the password is wrong",
  },
  { name: "no password", password: "", reason: "NOAUTH: it asks for a password and none is set" },
])("$name: limits hold in memory, and no password is in the log", async ({ password, reason }) => {
  const server = await redis({ password: "the-secret" });
  const gateway = gatewayAt(
    `redis://${password === "" ? "" : `:${password}@`}127.0.0.1:${server.port}`,
  );
  await until(() => gateway.warnings.length > 0);
  expect((await ask(gateway, [daily(10)], 10)).kind).toBe("admitted");
  expect(await ask(gateway, [daily(10)], 1)).toMatchObject({ kind: "refused", reserved: 10 });
  for (let attempts = 0; attempts < 3; attempts++) clock.advance(STEP_MS);
  expect(gateway.warnings.map((line) => line["reason"])).toEqual([reason]);
  expect(JSON.stringify(gateway.lines)).not.toMatch(/secret/);
});

test("a right password is used, from the URL", async () => {
  const server = await redis({ password: "the-secret" });
  await gatewayOn(server.url);
});

test("a database that does not exist is not silently another", async () => {
  const server = await redis();
  const gateway = gatewayAt(`${server.url}/99`);
  await until(() => gateway.warnings.length > 0);
  expect(gateway.warnings[0]?.["reason"]).toMatch(/DB index is out of range/);
  expect(await server.command("DBSIZE")).toBe(0);
});

test("at the start: a store that is coming is waited for, as long as for an answer", async () => {
  const server = await redis();
  const gateway = gatewayAt(server.url);
  // Asked before the connection can be established.
  expect((await ask(gateway, [daily(10)], 1)).kind).toBe("admitted");
  expect(await gateway.metric("svc_store_fail_open_total")).toBe(0);
  expect(await leases(server)).toBe(1);
});

test("at the start: no store, no wait", async () => {
  const server = await redis();
  await server.kill();
  const gateway = gatewayAt(server.url);
  expect((await ask(gateway, [daily(10)], 1)).kind).toBe("admitted");
  expect(await gateway.metric("svc_store_fail_open_total")).toBe(1);
  expect(gateway.warnings).toHaveLength(1);
});

test("a server that closes idle connections is no outage", async () => {
  const server = await redis();
  const gateway = await gatewayOn(server.url);
  gateway.limits.settle(await admitted(gateway, [daily(100)], 10), used(10));
  await pass(clock, 10);
  await until(async () => (await stored(server, "agent|t")) === 10);
  const connections = async (): Promise<string> =>
    String(await server.command("INFO", "stats")).match(/total_connections_received:\d+/)?.[0] ??
    "";
  const before = await connections();
  await server.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
  await until(async () => (await connections()) !== before, { what: "a new connection" });
  expect(await ask(gateway, [daily(100)], 91)).toMatchObject({ kind: "refused", used: 10 });
  expect(gateway.lines).toEqual([]);
  expect(await gateway.metric("svc_store_fail_open_total")).toBe(0);
});

test("a permission that the user lacks is named", async () => {
  const server = await redis();
  await server.command("ACL", "SETUSER", "svc", "on", ">pass", "+@all", "-@scripting", "~svc:*");
  const gateway = gatewayAt(`redis://svc:pass@127.0.0.1:${server.port}`);
  await until(() => gateway.warnings.length > 0);
  expect(gateway.warnings[0]?.["reason"]).toMatch(/^NOPERM: /);
});

test("the permissions that the documentation names are enough", async () => {
  const server = await redis();
  await server.command(
    "ACL",
    "SETUSER",
    "svc",
    "on",
    ">pass",
    "+@scripting",
    "+@read",
    "+@write",
    "+@connection",
    "~svc:*",
  );
  const gateway = await gatewayOn(`redis://svc:pass@127.0.0.1:${server.port}`);
  gateway.limits.settle(
    await admitted(gateway, [daily(100), rate(9), concurrency(9)], 10),
    used(10),
  );
  expect(await usage(gateway)).toMatchObject({ tokens: 10 });
  expect(gateway.warnings).toEqual([]);
});

describe("when writes are due", () => {
  test("a call's end is told within 5 ms, though a record is told within 500 ms", async () => {
    const gateway = await gatewayOn((await redis()).url);
    const lease = await admitted(gateway, [daily(1_000_000)], 1);
    // The deadline of that answer is over.
    await pass(clock, 10);
    const renewal = clock.pending;
    gateway.limits.record(SCOPE, ["agent"], used(1), clock.now());
    expect(clock.pending).toEqual([500, ...renewal]);
    gateway.limits.settle(lease, used(1));
    expect(clock.pending).toEqual([5, ...renewal]);
    gateway.limits.record(SCOPE, ["agent"], used(1), clock.now());
    expect(clock.pending).toEqual([5, ...renewal]);
    clock.advance(5);
    await until(async () => (await usage(gateway))?.tokens === 3);
    await pass(clock, 1_000, 250);
    gateway.limits.record(SCOPE, ["agent"], used(1), clock.now());
    expect(clock.pending[0]).toBe(500);
  });

  test("nothing is due any more after the end, whatever still comes", async () => {
    const gateway = await gatewayOn((await redis()).url);
    const lease = await admitted(gateway, [daily(1_000_000)], 1);
    gateway.limits.record(SCOPE, ["agent"], used(1), clock.now());
    await gateway.limits.close();
    expect(clock.pending).toEqual([]);
    gateway.limits.settle(lease, used(1));
    gateway.limits.record(SCOPE, ["agent"], used(1), clock.now());
    expect(clock.pending).toEqual([]);
  });

  test("the end waits for a store that does not answer, for a second at most", async () => {
    const server = await redis();
    const gateway = await gatewayOn(server.url);
    gateway.limits.record(SCOPE, ["agent"], used(1), clock.now());
    server.pause();
    let closed = false;
    const closing = gateway.limits.close().then(() => (closed = true));
    clock.advance(999);
    await rounds();
    expect(closed).toBe(false);
    clock.advance(1);
    await closing;
    server.resume();
    expect(clock.pending).toEqual([]);
  });
});

test("while the store is away, usage is what this process knows, and scopes are told afterwards", async () => {
  const server = await redis();
  const gateway = await gatewayOn(server.url);
  await server.kill();
  await until(async () => !(await gateway.up()));
  const scopes = Array.from({ length: 130 }, (_, index) => `agent/default/a-${index}`);
  for (const scope of scopes) gateway.limits.record(scope, ["agent"], used(2), clock.now());
  const usages = (): ReturnType<LimitingProcess["limits"]["usage"]> =>
    gateway.limits.usage(scopes.map((scope) => ({ scope, account: "agent" })));
  expect((await usages()).map(({ tokens }) => tokens)).toEqual(scopes.map(() => 2));
  await server.restart();
  await back(gateway);
  const other = await gatewayOn(server.url);
  const told = await other.limits.usage(scopes.map((scope) => ({ scope, account: "agent" })));
  expect(told.map(({ tokens }) => tokens)).toEqual(scopes.map(() => 2));
});

describe("a connection", () => {
  async function through(): Promise<{
    gateway: LimitingProcess;
    proxy: TcpProxy;
    server: RedisServer;
  }> {
    const server = await redis();
    const proxy = await proxyOf(server);
    return { gateway: await gatewayOn(`redis://127.0.0.1:${proxy.port}`), proxy, server };
  }

  test("that breaks under a question is no outage: memory decides this one", async () => {
    const { gateway, proxy } = await through();
    proxy.hold();
    const asked = ask(gateway, [daily(10)], 1);
    await until(() => proxy.held > 0);
    proxy.cut();
    expect((await asked).kind).toBe("admitted");
    proxy.release();
    await until(() => gateway.up(), { what: "the store to be used again, though no time passes" });
    expect(gateway.warnings).toEqual([]);
    expect(await gateway.metric("svc_store_fail_open_total")).toBe(1);
  });

  test("that loses the end of a call is no loss: the end is told by the next one", async () => {
    const { gateway, proxy, server } = await through();
    const lease = await admitted(gateway, [daily(1_000_000)], 10);
    proxy.swallows = true;
    gateway.limits.settle(lease, used(6));
    clock.advance(5);
    await rounds();
    proxy.cut();
    proxy.swallows = false;
    await until(async () => (await leases(server)) === 0, { what: "the lease to be taken away" });
    expect(await stored(server, "agent|t")).toBe(6);
  });

  test("on which a write has no answer for a second is an outage", async () => {
    const { gateway, proxy, server } = await through();
    proxy.swallows = true;
    gateway.limits.record(SCOPE, ["agent"], used(3), clock.now());
    clock.advance(500);
    await pass(clock, 750, 250);
    expect(await gateway.up()).toBe(true);
    await pass(clock, 500, 250);
    expect(await gateway.up()).toBe(false);
    expect(gateway.warnings.map(({ reason }) => reason)).toEqual(["no answer in 1000 ms"]);
    proxy.swallows = false;
    proxy.cut();
    await back(gateway);
    await until(async () => (await stored(server, "agent|t")) === 3);
  });

  test("that is dead is replaced after ten seconds", async () => {
    const { gateway, proxy } = await through();
    proxy.swallows = true;
    const asked = ask(gateway, [daily(10)], 1);
    await rounds();
    await pass(clock, TIMEOUT_MS);
    expect((await asked).kind).toBe("admitted");
    clock.advance(STEP_MS);
    await rounds();
    proxy.swallows = false;
    await pass(clock, 10_000, STEP_MS);
    await back(gateway);
    expect(gateway.warnings).toHaveLength(1);
  });

  test("is closed at the end", async () => {
    const server = await redis();
    const connected = async (): Promise<string> =>
      /connected_clients:\d+/.exec(String(await server.command("INFO", "clients")))?.[0] ?? "";
    const before = await connected();
    const gateway = await gatewayOn(server.url);
    expect(await connected()).not.toBe(before);
    await gateway.limits.close();
    await until(async () => (await connected()) === before);
  });
});

test("while the store is away nobody waits for it, for an admission or a raise; each is counted", async () => {
  const server = await redis();
  const gateway = await gatewayOn(server.url);
  const checks = [daily(100)];
  const lease = await admitted(gateway, checks, 10);
  const raise = (tokens: number): Admission | Promise<Admission> =>
    gateway.limits.reserve(lease, checks, { tokens, microUsd: 0, requests: 1 });
  server.pause();
  const raising = Promise.resolve(raise(60));
  await rounds();
  await pass(clock, TIMEOUT_MS);
  expect(await raising).toMatchObject({ kind: "admitted" });
  expect(await gateway.metric("svc_store_fail_open_total")).toBe(1);
  expect(raise(101)).toMatchObject({ kind: "refused", reserved: 0 });
  expect(raise(90)).toMatchObject({ kind: "admitted" });
  const request = { id: randomUUID(), scope: SCOPE, accounts: ["agent"], checks };
  expect(
    gateway.limits.admit({ ...request, reserve: { tokens: 11, microUsd: 0, requests: 1 } }),
  ).toMatchObject({ kind: "refused", reserved: 90 });
  expect(await gateway.metric("svc_store_fail_open_total")).toBe(4);
  server.resume();
  await back(gateway);
  expect(await ask(gateway, checks, 11)).toMatchObject({ kind: "refused", reserved: 90 });
});

/**
 * Answers so many probes, one after the other; `beforeLast` runs before the last one is answered.
 */
async function answerProbes(
  gateway: LimitingProcess,
  proxy: TcpProxy,
  count: number,
  beforeLast: () => void,
): Promise<void> {
  proxy.release();
  const before = await gateway.probes();
  for (let good = 1; good <= count; good++) {
    proxy.hold();
    await until(() => {
      if (proxy.held > 0) return true;
      clock.advance(STEP_MS);
      return false;
    });
    if (good === count) beforeLast();
    proxy.release();
    await until(async () => (await gateway.probes()) === before + good);
  }
  await rounds();
}

test("a store that answers probes, and not what it missed, is not used", async () => {
  const server = await redis();
  const proxy = await proxyOf(server);
  const gateway = await gatewayOn(`redis://127.0.0.1:${proxy.port}`);
  proxy.hold();
  const asked = ask(gateway, [daily(100)], 1);
  await until(() => proxy.held > 0);
  await pass(clock, TIMEOUT_MS);
  await asked;
  gateway.limits.record(SCOPE, ["agent"], used(5), clock.now());
  // After the last probe, the catch-up is lost.
  await answerProbes(gateway, proxy, 3, () => (proxy.swallows = true));
  await pass(clock, 1_250, STEP_MS);
  expect(await gateway.up()).toBe(false);
  expect(await stored(server, "agent|t")).toBe(0);
  proxy.swallows = false;
  proxy.cut();
  await back(gateway);
  await until(async () => (await stored(server, "agent|t")) === 5);
  expect(gateway.warnings).toHaveLength(1);
});

test("a call that ended during an outage holds nothing, even if its lease was due for renewal", async () => {
  const server = await redis();
  const gateway = gatewayAt(server.url, { leaseMs: LEASE_MS });
  await until(() => gateway.up());
  const lease = await admitted(gateway, [concurrency(1)]);
  await server.kill();
  await until(async () => !(await gateway.up()));
  // A third of the time for which the store keeps a lease: its renewal is queued.
  clock.advance(LEASE_MS / 3);
  gateway.limits.settle(lease, used(5));
  await server.restart();
  await back(gateway);
  await until(async () => (await stored(server, "agent|t")) === 5);
  expect(await leases(server)).toBe(0);
});

test("an admission that could not be taken back is taken back later", async () => {
  const server = await redis();
  const proxy = await proxyOf(server);
  const gateway = await gatewayOn(`redis://127.0.0.1:${proxy.port}`);
  const window = async (): Promise<unknown> =>
    server.command("ZCARD", `svc:{${SCOPE}}:window:60000:agent`);
  const held = await admitted(gateway, [concurrency(1)]);
  // The store forgets the lease, and admits late what memory has refused.
  await server.command(
    "DEL",
    ...["leases", "amounts", "reserved"].map((key) => `svc:{${SCOPE}}:${key}`),
  );
  proxy.hold();
  const asked = ask(gateway, [concurrency(1), rate(9)]);
  await until(() => proxy.held > 0);
  await pass(clock, TIMEOUT_MS);
  expect((await asked).kind).toBe("refused");
  gateway.limits.settle(held, NOTHING);
  await answerProbes(gateway, proxy, 3, () => (proxy.swallows = true));
  await pass(clock, 1_250, STEP_MS);
  expect(await gateway.up()).toBe(false);
  expect(await window()).toBe(1);
  proxy.swallows = false;
  proxy.cut();
  await back(gateway);
  await until(async () => (await window()) === 0, { what: "the admission to be taken back" });
  expect(await leases(server)).toBe(0);
});
