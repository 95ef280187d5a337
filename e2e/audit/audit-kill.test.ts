/**
 * The gateway service is killed repeatedly under load: every answer that a client received
 * completely is in the audit chain, the chain verifies after each restart, and no lease of a killed
 * process stays taken.
 */
import { appendFileSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { load } from "../support/load.ts";
import { RedisServer } from "../support/redis.ts";
import { agentYaml, providerYaml } from "../support/resources.ts";
import { Stack, svc } from "../support/stack.ts";
import { Vendor } from "../support/vendors.ts";
import { until } from "../support/wait.ts";

/** `svc up` waits longer before each restart, up to 5 s: 100 take some ten minutes. */
const KILLS = Number(process.env["SVC_E2E_KILLS"] ?? 6);

let redis: RedisServer;
let vendor: Vendor;
let stack: Stack;
let token: string;

beforeAll(async () => {
  redis = await RedisServer.start();
  vendor = await Vendor.start("openai");
  const files = {
    "p.yaml": providerYaml("p", vendor),
    "a.yaml": agentYaml("a", ["p/*"], { maxConcurrentRequests: 40 }),
  };
  stack = await Stack.start({
    files,
    args: [
      "--redis-url",
      redis.url,
      "--lease-seconds",
      "2",
      "--concurrency",
      "1",
      "--log-level",
      "warn",
    ],
  });
  token = await stack.token("a");
  vendor.always(vendor.says({ text: ["One", " two"] }));
});

afterAll(async () => {
  await stack?.stop();
  await vendor?.close();
  await redis?.stop();
});

const chainDir = (): string => path.join(stack.stateDir, "audit/gateway");

const segments = (): string[] =>
  readdirSync(chainDir())
    .filter((name) => /^\d+\.jsonl$/.test(name))
    .sort();

/** Ids of the recorded calls. */
function recorded(): Set<string> {
  const lines = segments().flatMap((name) =>
    readFileSync(path.join(chainDir(), name), "utf8").split("\n"),
  );
  const ids = lines.flatMap((line) => {
    try {
      const { type, fields } = JSON.parse(line) as { type: string; fields: { call?: string } };
      return type === "LLM_CALL" && fields.call !== undefined ? [fields.call] : [];
    } catch {
      // A torn line: its call was not answered.
      return [];
    }
  });
  expect(new Set(ids).size).toBe(ids.length);
  return new Set(ids);
}

async function verifies(): Promise<void> {
  const ran = await svc(["audit", "verify", "--state-dir", stack.stateDir]);
  expect(ran.code, ran.stdout + ran.stderr).toBe(0);
}

test(`killed ${KILLS} times under load`, { timeout: 300_000 + KILLS * 30_000 }, async () => {
  const asks = [false, true].map((stream) => ({
    dialect: "openai" as const,
    model: "p/gpt-5",
    stream,
  }));
  /** Ids of the answers that clients received completely. */
  const answered: string[] = [];
  for (let kill = 1; kill <= KILLS; kill += 1) {
    const running = load({ target: { port: stack.port, token }, asks, concurrency: 20 });
    const whole = (): string[] =>
      running.outcomes.flatMap(({ status, callId, text }) =>
        status === 200 && /x-svc-output-tokens|"usage"/.test(text) && callId !== undefined
          ? [callId]
          : [],
      );
    await until(() => whole().length >= 50, { what: "calls to be answered" });
    const { gateway } = stack.pids();
    process.kill(gateway, "SIGKILL");
    await until(() => stack.pids().gateway !== gateway, { what: "the gateway to be gone" });
    await running.stop();
    answered.push(...whole());
    await until(() => ![0, gateway].includes(stack.pids().gateway), {
      what: "the gateway to be started again",
    });
    await stack.settled();
    await verifies();
  }
  const kept = recorded();
  expect(answered.length).toBeGreaterThanOrEqual(50 * KILLS);
  expect(answered.filter((id) => !kept.has(id))).toEqual([]);
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
      return (JSON.parse(stdout) as { status: { inFlight: number } }).status.inFlight === 0;
    },
    { what: "no place to be taken" },
  );
});

test("a line that is put in is found", async () => {
  const name = segments().at(-1) as string;
  appendFileSync(path.join(chainDir(), name), '{"v":1}\n');
  const ran = await svc(["audit", "verify", "--state-dir", stack.stateDir]);
  expect(ran.code).toBe(1);
});
