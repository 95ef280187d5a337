/**
 * Midnight (UTC) during heavy load, on two gateway processes with one Redis: usage belongs to the
 * day of admission.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TimeOfDay } from "../support/clock.ts";
import {
  asAgent,
  asKey,
  type CallerAt,
  Crowd,
  reservedEach,
  TOKENS,
  type Usage,
} from "../support/crowd.ts";
import { RedisServer } from "../support/redis.ts";
import { accessKeyYaml, agentYaml, providerYaml } from "../support/resources.ts";
import { Stack } from "../support/stack.ts";
import { Vendor } from "../support/vendors.ts";
import { until } from "../support/wait.ts";

const CALLERS = 200;
/** Leases survive the jumps of the clocks. */
const LEASE_SECONDS = "3600";

let redis: RedisServer;
let vendor: Vendor;
let clocks: readonly TimeOfDay[];
let stacks: readonly Stack[];
let crowd: Crowd;

interface Budget {
  readonly what: string;
  readonly caller: CallerAt;
  readonly kind: string;
  readonly name: string;
  /** Number of callers that fit, if one has this much reserved. */
  readonly room: (each: number) => number;
}

const TOKEN_BUDGET = 2_000;
const REQUEST_BUDGET = 30;
const COST_BUDGET_USD = 0.01;

const BUDGETS: readonly Budget[] = [
  {
    what: "an agent's maxTokensPerDay",
    caller: asAgent("tokens"),
    kind: "agent",
    name: "tokens",
    room: (each) => Math.floor(TOKEN_BUDGET / each),
  },
  {
    what: "an agent's maxCostPerDayUSD",
    caller: asAgent("cost"),
    kind: "agent",
    name: "cost",
    room: (each) => Math.floor(Math.round(COST_BUDGET_USD * 1e6) / Math.round(each * 1e6)),
  },
  {
    what: "a key's maxTokensPerDay",
    caller: asKey("spender"),
    kind: "access-key",
    name: "spender",
    room: (each) => Math.floor(TOKEN_BUDGET / each),
  },
  {
    what: "a key's maxRequestsPerDay",
    caller: asKey("requests"),
    kind: "access-key",
    name: "requests",
    room: () => REQUEST_BUDGET,
  },
  {
    what: "a provider's maxTokensPerDay, through two keys",
    caller: asKey("one", "other"),
    kind: "model-provider",
    name: "budget",
    room: (each) => Math.floor(TOKEN_BUDGET / each),
  },
];

beforeAll(async () => {
  redis = await RedisServer.start();
  vendor = await Vendor.start("openai");
  clocks = [new TimeOfDay(), new TimeOfDay()];
  const files: Record<string, string> = {
    "open.yaml": providerYaml("open", vendor, { spec: { externalAccess: { enabled: true } } }),
    "budget.yaml": providerYaml("budget", vendor, {
      spec: { externalAccess: { enabled: true, maxTokensPerDay: TOKEN_BUDGET } },
    }),
    "requests.yaml": accessKeyYaml("requests", "open", {
      limits: { maxRequestsPerDay: REQUEST_BUDGET },
    }),
    "spender.yaml": accessKeyYaml("spender", "open", { limits: { maxTokensPerDay: TOKEN_BUDGET } }),
    "one.yaml": accessKeyYaml("one", "budget"),
    "other.yaml": accessKeyYaml("other", "budget"),
    "tokens.yaml": agentYaml("tokens", ["open/*"], { maxTokensPerDay: TOKEN_BUDGET }),
    "cost.yaml": agentYaml("cost", ["open/*"], { maxCostPerDayUSD: COST_BUDGET_USD }),
    "halves.yaml": agentYaml("halves", ["open/*"], { maxTokensPerDay: TOKEN_BUDGET }),
    "apart.yaml": agentYaml("apart", ["open/*"], { maxTokensPerDay: TOKEN_BUDGET }),
    "concurrent.yaml": agentYaml("concurrent", ["open/*"], { maxConcurrentRequests: 20 }),
    "rpm.yaml": agentYaml("rpm", ["open/*"], { requestsPerMinute: 50 }),
  };
  const started: Stack[] = [];
  for (const { env } of clocks) {
    started.push(
      await Stack.start({
        files,
        env,
        args: ["--redis-url", redis.url, "--concurrency", "1", "--lease-seconds", LEASE_SECONDS],
      }),
    );
    stacks = started;
  }
  crowd = new Crowd(vendor, stacks);
});

afterAll(async () => {
  await Promise.all((stacks ?? []).map(async (stack) => stack.stop()));
  await vendor?.close();
  await redis?.stop();
  for (const clock of clocks ?? []) clock.close();
});

describe.each(BUDGETS)("$what", ({ caller, kind, name, room }) => {
  test("a full budget each day, and each call in the day that let it in", async () => {
    at("23:50:00");
    const before = await crowd.rush(caller, CALLERS);
    const inside = room(reservedEach(before));
    expect(before.inside).toHaveLength(inside);
    at("00:01:00", 1);
    // Yesterday's calls are still under way.
    const after = await crowd.rush(caller, CALLERS);
    expect(after.inside).toHaveLength(inside);
    await crowd.finish(after);
    await crowd.settledAs(kind, name, used(inside));
    await crowd.finish(before);
    await idle();
    await crowd.settledAs(kind, name, used(inside));
    at("23:55:00");
    await crowd.settledAs(kind, name, used(inside));
  });
});

test("midnight while they arrive: each day's budget holds, and what the two have used is what was let in", async () => {
  at("23:59:00");
  const rushing = crowd.rush(asAgent("halves"), CALLERS);
  await vendor.request(10);
  at("00:01:00", 1);
  const rush = await rushing;
  const room = Math.floor(TOKEN_BUDGET / reservedEach(rush));
  await crowd.finish(rush);
  await idle();
  const [yesterday, today] = await until(
    async () => {
      const days = [await usedOn("23:59:00", 0), await usedOn("00:02:00", 1)] as const;
      return days[0].requestsToday + days[1].requestsToday === rush.inside.length
        ? days
        : undefined;
    },
    { what: "every call that was let in to count in one of the days" },
  );
  expect(yesterday.requestsToday).toBeGreaterThanOrEqual(10);
  for (const { requestsToday, tokensToday } of [yesterday, today]) {
    expect(requestsToday).toBeLessThanOrEqual(room);
    expect(tokensToday).toBe(requestsToday * TOKENS);
  }
});

test("two gateways whose clocks disagree about the day: each counts in its own", async () => {
  clocks[0]?.set("23:59:00");
  clocks[1]?.set("00:01:00", 1);
  const rush = await crowd.rush(asAgent("apart"), CALLERS);
  const room = Math.floor(TOKEN_BUDGET / reservedEach(rush));
  expect(rush.inside).toHaveLength(2 * room);
  await crowd.finish(rush);
  await crowd.settledAs("agent", "apart", used(room));
  at("23:59:00");
  await crowd.settledAs("agent", "apart", used(room));
  at("00:01:00", 1);
  await crowd.settledAs("agent", "apart", used(room));
});

test("calls under way count against maxConcurrentRequests after midnight too, and give their places back", async () => {
  at("23:59:00");
  const before = await crowd.rush(asAgent("concurrent"), CALLERS);
  expect(before.inside).toHaveLength(20);
  at("00:01:00", 1);
  expect((await crowd.rush(asAgent("concurrent"), CALLERS)).inside).toHaveLength(0);
  await crowd.finish(before);
  await crowd.settledAs("agent", "concurrent", { inFlight: 0 });
  const after = await crowd.rush(asAgent("concurrent"), CALLERS);
  expect(after.inside).toHaveLength(20);
  await crowd.finish(after);
});

test("the minute of requestsPerMinute does not end at midnight", async () => {
  at("23:59:50");
  const before = await crowd.rush(asAgent("rpm"), CALLERS);
  expect(before.inside).toHaveLength(50);
  await crowd.finish(before);
  at("00:00:05", 1);
  expect((await crowd.rush(asAgent("rpm"), CALLERS)).inside).toHaveLength(0);
  at("00:01:30", 1);
  const after = await crowd.rush(asAgent("rpm"), CALLERS);
  expect(after.inside).toHaveLength(50);
  await crowd.finish(after);
});

const used = (calls: number): Partial<Usage> => ({
  tokensToday: calls * TOKENS,
  requestsToday: calls,
});

function at(time: string, daysLater = 0): void {
  for (const clock of clocks) clock.set(time, daysLater);
}

async function usedOn(time: string, daysLater: number): Promise<Usage> {
  at(time, daysLater);
  return (await crowd.usage("agent", "halves"))[0] as Usage;
}

async function idle(): Promise<void> {
  await Promise.all(stacks.map(async (stack) => stack.idle()));
}
