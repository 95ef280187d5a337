/**
 * Two gateways behind one address, and clients whose requests go to them in turn: nothing is lost,
 * and no daily limit is exceeded.
 */
import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TimeOfDay } from "../support/clock.ts";
import { CLIENTS, type ClientTransportKind } from "../support/mcp/clients.ts";
import { type EverythingServer, startEverything } from "../support/mcp/everything.ts";
import { mcpKeyYaml, mcpProviderYaml } from "../support/mcp/resources.ts";
import { ScriptedServer } from "../support/mcp/scripted.ts";
import { RedisServer } from "../support/redis.ts";
import { rawKey } from "../support/resources.ts";
import { Stack, svc } from "../support/stack.ts";
import { until } from "../support/wait.ts";

const CALLERS = 100;
const DAILY = 60;

let redis: RedisServer;
let servers: Readonly<Record<"http" | "sse", EverythingServer>>;
let scripted: ScriptedServer;
let stacks: readonly Stack[];
/** Noon: no day ends in a test. */
let clock: TimeOfDay;

beforeAll(async () => {
  redis = await RedisServer.start();
  clock = new TimeOfDay();
  servers = { http: await startEverything("streamableHttp"), sse: await startEverything("sse") };
  scripted = await ScriptedServer.start();
  scripted.answer = () => ({ body: '{"jsonrpc":"2.0","id":1,"result":{"content":[]}}' });
  const files: Record<string, string> = {
    "capped.yaml": mcpProviderYaml("capped", {
      url: scripted.url,
      spec: [`externalAccess: {enabled: true, maxRequestsPerDay: ${DAILY}}`],
    }),
    "one.yaml": mcpKeyYaml("one", "capped"),
    "other.yaml": mcpKeyYaml("other", "capped"),
    "open.yaml": mcpProviderYaml("open", { url: scripted.url }),
    "limited.yaml": mcpKeyYaml("limited", "open", [`limits: {maxRequestsPerDay: ${DAILY}}`]),
  };
  for (const transport of ["http", "sse"] as const) {
    const { url } = servers[transport];
    files[`${transport}.yaml`] = mcpProviderYaml(transport, { url, transport });
    files[`${transport}-key.yaml`] = mcpKeyYaml(`to-${transport}`, transport);
  }
  const workloadKey = randomBytes(32);
  const start = async (): Promise<Stack> =>
    Stack.start({
      files,
      workloadKey,
      env: clock.env,
      args: ["--redis-url", redis.url, "--redis-timeout-ms", "5000", "--concurrency", "1"],
    });
  stacks = [await start(), await start()];
});

afterAll(async () => {
  await Promise.all((stacks ?? []).map(async (stack) => stack.stop()));
  for (const server of Object.values(servers ?? {})) await server.stop();
  await scripted?.stop();
  await redis?.stop();
  clock?.close();
});

const TRANSPORTS: readonly ClientTransportKind[] = ["http", "sse"];

describe.each(
  TRANSPORTS.flatMap((transport) =>
    (["http", "sse"] as const).map((upstream) => [transport, upstream] as const),
  ),
)("clients over %s, server over %s", (transport, upstream) => {
  test("bounce between the replicas, and lose nothing", async () => {
    const urls = stacks.map((stack) => `${stack.externalUrl}/ext/mcp/${upstream}`);
    const clients = await Promise.all(
      Array.from({ length: 5 }, (_, i) =>
        CLIENTS[i % 2 === 0 ? "present" : "next"]({
          urls: i < 3 ? urls : urls.toReversed(),
          key: rawKey(`to-${upstream}`),
          transport,
        }),
      ),
    );
    await Promise.all(
      clients.map(async (client, i) => {
        expect(await client.listTools()).toContain("echo");
        const answers = await Promise.all(
          Array.from({ length: 12 }, async (_, n) =>
            client.callTool("echo", { message: `${i}-${n}.` }),
          ),
        );
        expect(answers).toEqual(Array.from({ length: 12 }, (_, n) => `Echo: ${i}-${n}.`));
        const asked = { prompt: "p", maxTokens: 5 };
        expect(await client.callTool("trigger-sampling-request", asked)).toContain("sampled words");
        const seen: number[] = [];
        await client.callTool(
          "trigger-long-running-operation",
          { duration: 0.3, steps: 3 },
          { onprogress: ({ progress }) => void seen.push(progress) },
        );
        expect(seen.slice(0, 2)).toEqual([1, 2]);
        await client.close();
      }),
    );
  });
});

describe("at the edge of a daily limit, 100 callers at once are never over", () => {
  const CALL = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}';

  async function rush(provider: string, keys: readonly string[]): Promise<readonly number[]> {
    const statuses = Array.from({ length: CALLERS }, async (_, i) => {
      const stack = stacks[i % stacks.length] as Stack;
      const answer = await fetch(`${stack.externalUrl}/ext/mcp/${provider}`, {
        method: "POST",
        headers: {
          authorization: `Bearer ${rawKey(keys[Math.floor(i / 2) % keys.length] as string)}`,
          "content-type": "application/json",
          accept: "application/json, text/event-stream",
        },
        body: CALL,
      });
      const text = await answer.text();
      if (answer.status === 429) {
        expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
        expect(text).toContain("requests_per_day_exceeded");
      }
      return answer.status;
    });
    return Promise.all(statuses);
  }

  test.each([
    ["of a provider, through two keys", "capped", ["one", "other"], "provider", "capped"],
    ["of a key", "open", ["limited"], "access-key", "limited"],
  ])("%s", async (_, provider, keys, kind, name) => {
    scripted.received.length = 0;
    const statuses = await rush(provider, keys);
    expect(statuses.filter((status) => status === 200)).toHaveLength(DAILY);
    expect(statuses.filter((status) => status === 429)).toHaveLength(CALLERS - DAILY);
    expect(scripted.received).toHaveLength(DAILY);
    expect((await rush(provider, keys)).every((status) => status === 429)).toBe(true);
    expect(scripted.received).toHaveLength(DAILY);
    await until(
      async () => {
        const dir = (stacks[0] as Stack).stateDir;
        const { stdout } = await svc(["get", kind, name, "-o", "json", "--state-dir", dir]);
        return stdout.includes(`"requestsToday": ${DAILY}`);
      },
      { what: "the usage in the status" },
    );
  });
});
