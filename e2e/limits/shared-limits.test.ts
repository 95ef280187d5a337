/** Two gateways, one Redis: at the edge of each limit, many concurrent callers never exceed it. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TimeOfDay } from "../support/clock.ts";
import {
  asAgent,
  asKey,
  type CallerAt,
  Crowd,
  reservedEach,
  TOKENS,
  USED,
} from "../support/crowd.ts";
import { RedisServer } from "../support/redis.ts";
import { accessKeyYaml, agentYaml, providerYaml } from "../support/resources.ts";
import { Stack } from "../support/stack.ts";
import { Vendor } from "../support/vendors.ts";
import { until } from "../support/wait.ts";

const CALLERS = 200;

let redis: RedisServer;
let vendor: Vendor;
let stacks: readonly Stack[];
let crowd: Crowd;
/** Noon: no day ends in a test. */
let clock: TimeOfDay;

const AGENTS: Readonly<Record<string, Record<string, number>>> = {
  rpm: { requestsPerMinute: 50 },
  concurrent: { maxConcurrentRequests: 20 },
  tokens: { maxTokensPerDay: 2_000 },
  cost: { maxCostPerDayUSD: 0.01 },
};

beforeAll(async () => {
  redis = await RedisServer.start();
  clock = new TimeOfDay();
  vendor = await Vendor.start("openai");
  const open = (maxTokensPerDay?: number): { spec: object } => ({
    spec: {
      externalAccess: { enabled: true, ...(maxTokensPerDay !== undefined && { maxTokensPerDay }) },
    },
  });
  const files: Record<string, string> = {
    "open.yaml": providerYaml("open", vendor, open() as { spec: Record<string, unknown> }),
    "budget.yaml": providerYaml("budget", vendor, open(2_000) as { spec: Record<string, unknown> }),
    "requests.yaml": accessKeyYaml("requests", "open", { limits: { maxRequestsPerDay: 30 } }),
    "spender.yaml": accessKeyYaml("spender", "open", { limits: { maxTokensPerDay: 2_000 } }),
    "one.yaml": accessKeyYaml("one", "budget"),
    "other.yaml": accessKeyYaml("other", "budget"),
  };
  for (const [name, limits] of Object.entries(AGENTS))
    files[`agent-${name}.yaml`] = agentYaml(name, ["open/*"], limits);
  const start = async (): Promise<Stack> =>
    Stack.start({
      files,
      env: clock.env,
      // On a busy machine Redis may be late: these tests are about what it decides.
      args: [
        ["--redis-url", redis.url, "--redis-timeout-ms", "5000"],
        ["--concurrency", "1"],
      ].flat(),
    });
  stacks = [await start(), await start()];
  crowd = new Crowd(vendor, stacks);
});

afterAll(async () => {
  await Promise.all((stacks ?? []).map(async (stack) => stack.stop()));
  await vendor?.close();
  await redis?.stop();
  clock?.close();
});

test("requestsPerMinute", async () => {
  const rush = await crowd.rush(asAgent("rpm"), CALLERS);
  expect(rush.inside).toHaveLength(50);
  expect(new Set(rush.refused.map(({ status }) => status))).toEqual(new Set([429]));
  await crowd.finish(rush);
  await crowd.settledAs("agent", "rpm", { requestsToday: 50, tokensToday: 50 * TOKENS });
});

test("maxConcurrentRequests, whose places are free again after answers, errors and clients that leave", async () => {
  const rush = await crowd.rush(asAgent("concurrent"), CALLERS);
  expect(rush.inside).toHaveLength(20);
  await crowd.finish(rush);
  await crowd.settledAs("agent", "concurrent", { requestsToday: 20, inFlight: 0 });
  crowd.failing = true;
  const unlucky = await crowd.rush(asAgent("concurrent"), CALLERS);
  expect(unlucky.inside).toHaveLength(20);
  await crowd.finish(unlucky);
  crowd.failing = false;
  await crowd.settledAs("agent", "concurrent", {
    requestsToday: 20,
    tokensToday: 20 * TOKENS,
    inFlight: 0,
  });
  const leaving = await crowd.rush(asAgent("concurrent"), CALLERS);
  expect(leaving.inside).toHaveLength(20);
  for (const exchange of leaving.inside) exchange.leave();
  await crowd.settledAs("agent", "concurrent", { inFlight: 0 });
  leaving.gate.open();
  const last = await crowd.rush(asAgent("concurrent"), CALLERS);
  expect(last.inside).toHaveLength(20);
  await crowd.finish(last);
});

describe.each<[string, CallerAt, string, string, number]>([
  ["an agent's maxTokensPerDay", asAgent("tokens"), "agent", "tokens", 2_000],
  ["a key's maxTokensPerDay", asKey("spender"), "access-key", "spender", 2_000],
  [
    "a provider's maxTokensPerDay, through two keys",
    asKey("one", "other"),
    "model-provider",
    "budget",
    2_000,
  ],
])("%s", (_name, caller, kind, name, limit) => {
  test("never over, everything back after failures, exact after settling, and then the rest", async () => {
    crowd.failing = true;
    const unlucky = await crowd.rush(caller, CALLERS);
    const each = reservedEach(unlucky);
    expect(each).toBeGreaterThan(USED.output);
    expect(unlucky.inside).toHaveLength(Math.floor(limit / each));
    await crowd.finish(unlucky);
    crowd.failing = false;
    await crowd.settledAs(kind, name, { tokensToday: 0, requestsToday: 0 });
    let used = 0;
    for (
      let inside = Math.floor(limit / each);
      inside > 0;
      inside = Math.floor((limit - used) / each)
    ) {
      const rush = await crowd.rush(caller, 100);
      expect(rush.inside).toHaveLength(inside);
      await crowd.finish(rush);
      used += inside * TOKENS;
      await crowd.settledAs(kind, name, { tokensToday: used, requestsToday: used / TOKENS });
    }
    expect(used).toBeLessThanOrEqual(limit);
    expect(used).toBeGreaterThan(limit - each);
  });
});

test("a key's maxRequestsPerDay", async () => {
  crowd.failing = true;
  const unlucky = await crowd.rush(asKey("requests"), CALLERS);
  expect(unlucky.inside).toHaveLength(30);
  await crowd.finish(unlucky);
  crowd.failing = false;
  await crowd.settledAs("access-key", "requests", { requestsToday: 0 });
  const rush = await crowd.rush(asKey("requests"), CALLERS);
  expect(rush.inside).toHaveLength(30);
  await crowd.finish(rush);
  await crowd.settledAs("access-key", "requests", { requestsToday: 30 });
  expect((await crowd.rush(asKey("requests"), 20)).inside).toHaveLength(0);
});

test("an agent's maxCostPerDayUSD", async () => {
  const rush = await crowd.rush(asAgent("cost"), CALLERS);
  const each = reservedEach(rush);
  expect(each).toBeGreaterThan(0);
  expect(rush.inside).toHaveLength(Math.floor(Math.round(0.01 * 1e6) / Math.round(each * 1e6)));
  await crowd.finish(rush);
  const [first] = await until(
    async () => {
      const [one, other] = await crowd.usage("agent", "cost");
      return one?.requestsToday === rush.inside.length && one.costTodayUSD === other?.costTodayUSD
        ? [one]
        : undefined;
    },
    { what: "the cost on both" },
  );
  const cost = first?.costTodayUSD ?? 0;
  expect(cost).toBeGreaterThan(0);
  expect(cost).toBeLessThanOrEqual(0.01);
});
