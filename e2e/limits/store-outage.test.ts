/**
 * Redis becomes unavailable under load, in every possible way: only the log shows it, and the
 * counts are correct afterwards.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { type Load, load, tally } from "../support/load.ts";
import { RedisServer, TcpProxy } from "../support/redis.ts";
import { agentYaml, providerYaml } from "../support/resources.ts";
import { Stack, svc } from "../support/stack.ts";
import { Vendor } from "../support/vendors.ts";
import { until } from "../support/wait.ts";

const TOKENS = 12;

let redis: RedisServer;
let proxy: TcpProxy;
let vendor: Vendor;
let stack: Stack;
let token: string;
/** Calls answered so far, over all tests: the counters count them all. */
let answered = 0;

beforeAll(async () => {
  redis = await RedisServer.start();
  proxy = await TcpProxy.start(redis.port);
  vendor = await Vendor.start("openai");
  const files = {
    "p.yaml": providerYaml("p", vendor),
    "a.yaml": agentYaml("a", ["p/*"], {
      requestsPerMinute: 1_000_000,
      maxConcurrentRequests: 1_000,
      maxTokensPerDay: 1_000_000_000,
      maxCostPerDayUSD: 1_000_000,
    }),
  };
  stack = await Stack.start({
    files,
    args: [
      "--redis-url",
      `redis://127.0.0.1:${proxy.port}`,
      "--concurrency",
      "1",
      // Only the outages of these tests are outages, not a machine that is busy.
      "--redis-timeout-ms",
      "1000",
    ],
  });
  token = await stack.token("a");
});

afterAll(async () => {
  await stack?.stop();
  await vendor?.close();
  await proxy?.stop();
  await redis?.stop();
});

beforeEach(async () => {
  vendor.reset();
  vendor.always(vendor.says({ text: ["ok"], usage: { input: 8, output: 4 } }));
  await storeIs(true);
});

async function storeIs(up: boolean): Promise<void> {
  await until(async () => (await stack.metrics()).sum("svc_store_up") === (up ? 1 : 0), {
    what: `the store to be ${up ? "used" : "away"}`,
  });
}

const warnings = (): number =>
  stack.logs.split("\n").filter((line) => line.includes("the store of limits is unavailable"))
    .length;

function begin(): Load {
  return load({
    target: { port: stack.port, token },
    asks: [{ dialect: "openai", model: "p/gpt-5", body: { max_tokens: 4 } }],
    concurrency: 20,
  });
}

/** This many more answers show that the gateway continues to decide. */
async function more(running: Load, answers = 300): Promise<void> {
  const from = running.done;
  await until(() => running.done >= from + answers, {
    what: `${answers} more answers`,
  });
}

async function countedOnce(): Promise<void> {
  const expected = { tokensToday: answered * TOKENS, requestsToday: answered, inFlight: 0 };
  let status: Record<string, unknown> = {};
  await until(
    async () => {
      const { stdout } = await svc([
        "get",
        "agent",
        "a",
        "-o",
        "json",
        "--state-dir",
        stack.stateDir,
      ]);
      ({ status } = JSON.parse(stdout) as { status: Record<string, unknown> });
      return Object.entries(expected).every(([field, value]) => status[field] === value);
    },
    { what: "the counts to be right" },
  ).catch((error: unknown) => {
    expect(status).toMatchObject(expected);
    throw error;
  });
}

interface Outage {
  readonly begin: () => void | Promise<void>;
  readonly end: () => void | Promise<void>;
}

const OUTAGES: Readonly<Record<string, Outage>> = {
  "killed and restarted empty": { begin: () => redis.kill(), end: () => redis.restart() },
  "stopped (SIGSTOP) and resumed": { begin: () => redis.pause(), end: () => redis.resume() },
  "slow by 5 seconds": {
    begin: () => void (proxy.delayMs = 5_000),
    end: () => void (proxy.delayMs = 0),
  },
  "cut off, with every request swallowed": {
    begin: () => void (proxy.swallows = true),
    end: () => void (proxy.swallows = false),
  },
};

test.each(Object.entries(OUTAGES))(
  "%s: no failed request, one warning, right counts",
  async (_name, outage) => {
    const before = warnings();
    const running = begin();
    await more(running);
    await outage.begin();
    await storeIs(false);
    // The store does not answer: decisions are made without it.
    await more(running, 500);
    await outage.end();
    await storeIs(true);
    await more(running);
    const outcomes = await running.stop();
    answered += outcomes.length;
    expect(tally(outcomes)).toEqual({ 200: outcomes.length });
    expect(warnings() - before).toBe(1);
    await countedOnce();
  },
);

test("emptied while it is in use: what this gateway counted is there again", async () => {
  const running = begin();
  await more(running);
  await redis.command("FLUSHALL");
  await more(running);
  const outcomes = await running.stop();
  answered += outcomes.length;
  expect(tally(outcomes)).toEqual({ 200: outcomes.length });
  await countedOnce();
});
