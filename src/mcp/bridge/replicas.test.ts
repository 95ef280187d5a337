/** Two replicas that share a bus: every request of a client may arrive at either. */
import path from "node:path";
import type { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { RedisServer } from "../../../e2e/support/redis.ts";
import { until } from "../../../e2e/support/wait.ts";
import { parseRedisSettings } from "../../limits/redis/redis-options.ts";
import { systemClock } from "../../platform/clock.ts";
import { CapturedLog } from "../../platform/testing.ts";
import { MemoryBus, type SessionBus } from "./bus.ts";
import { RedisBus } from "./redis-bus.ts";
import {
  callText,
  Cleanups,
  createClient,
  Front,
  Replica,
  SseUpstream,
  StreamableUpstream,
  ToolWorld,
} from "./testing.ts";

let cleanups: Cleanups;
let world: ToolWorld;
let folder: string;

beforeEach(() => {
  cleanups = new Cleanups();
  world = new ToolWorld();
  folder = cleanups.folder();
});

afterEach(async () => {
  world.release();
  await cleanups.run();
});

/** Buses of two processes, once they are connected. */
async function memoryBuses(): Promise<readonly SessionBus[]> {
  const bus = new MemoryBus();
  return Promise.resolve([bus, bus]);
}

async function redisBuses(): Promise<readonly SessionBus[]> {
  const server = await RedisServer.start();
  cleanups.add(() => server.stop());
  const buses = [0, 1].map(() => {
    const bus = new RedisBus({
      redis: parseRedisSettings({ url: server.url }),
      clock: systemClock,
      log: new CapturedLog().log,
      random: Math.random,
      onDefect: (error) => {
        throw error;
      },
    });
    cleanups.add(() => bus.close());
    return bus;
  });
  for (const [at, bus] of buses.entries()) {
    const name = `ready:${at}`;
    const subscription = await bus.open(name, () => "yes");
    await until(async () => (await buses[1 - at]?.send(name, "")) === "yes");
    subscription.close();
  }
  return buses;
}

const upstreamHeaders = {
  host: "mcp.test",
  authorization: "Bearer upstream",
  "x-svc-mcp-owner": "key/server",
  "x-svc-mcp-egress": "cluster",
};

/** Which replica serves the next request: both in turn, or one. */
type Balance = () => number;

const inTurn = (): Balance => {
  let count = 0;
  return () => (count += 1) % 2;
};

describe.each([
  { name: "memory", buses: memoryBuses },
  { name: "Redis", buses: redisBuses },
])("$name", ({ buses }) => {
  let replicas: readonly Replica[];

  beforeEach(async () => {
    const [first, second] = await buses();
    replicas = [
      await Replica.start(cleanups, folder, { bus: first as SessionBus }, "a"),
      await Replica.start(cleanups, folder, { bus: second as SessionBus }, "b"),
    ];
  });

  async function exercised({ client, told }: { client: Client; told: string[] }): Promise<void> {
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain("echo");
    for (let round = 0; round < 4; round += 1) {
      expect(await callText(client, "echo", { text: `round ${round}` })).toBe(`round ${round}`);
    }
    const large = "x".repeat(900_000);
    expect(await callText(client, "echo", { text: large })).toBe(large);
    const progress: number[] = [];
    await client.callTool({ name: "progress", arguments: {} }, undefined, {
      onprogress: (step) => progress.push(step.progress),
    });
    expect(progress).toEqual([1, 2, 3]);
    expect(await callText(client, "sample")).toContain("Sampled");
    expect(await callText(client, "elicit")).toBe("decline");
    expect(await callText(client, "roots")).toBe("file:///root");
    expect(await callText(client, "ping")).toBe("pong");
    const abort = new AbortController();
    const call = client.callTool({ name: "wait", arguments: {} }, undefined, {
      signal: abort.signal,
    });
    await until(() => world.started.length === 1);
    abort.abort();
    await expect(call).rejects.toThrow();
    await until(() => world.cancelled.length === 1);
    await until(() => {
      world.servers[0]?.sendToolListChanged();
      return told.length > 0;
    });
    for (const { defects } of replicas) expect(defects).toEqual([]);
  }

  async function sseClient(balance: Balance) {
    const front = new Front(
      () => replicas[balance()]?.clientsSocket ?? "",
      (headers) => ({ ...headers, "x-svc-mcp-owner": "key/server" }),
    );
    await cleanups.listen(front.server, 0);
    const { client, told } = createClient();
    cleanups.add(() => client.close());
    await client.connect(new SSEClientTransport(front.url("/ext/mcp/test/sse")));
    return { client, told };
  }

  async function streamableClient(balance: Balance) {
    const front = new Front(
      () => replicas[balance()]?.serversSocket ?? "",
      (headers) => ({ ...headers, ...upstreamHeaders }),
      () => "/base/sse",
    );
    await cleanups.listen(front.server, 0);
    const { client, told } = createClient();
    cleanups.add(() => client.close());
    const transport = new StreamableHTTPClientTransport(front.url("/ext/mcp/test"));
    await client.connect(transport);
    return { client, told, transport };
  }

  test("a client of the old transport, at both in turn", async () => {
    const upstream = new StreamableUpstream(world);
    await cleanups.listen(upstream.server, path.join(folder, "gateway.sock"));
    await exercised(await sseClient(inTurn()));
  });

  test("a server of the old transport, at both in turn", async () => {
    const upstream = new SseUpstream(world);
    await cleanups.listen(upstream.server, path.join(folder, "egress.sock"));
    const connection = await streamableClient(inTurn());
    await exercised(connection);
    await connection.transport.terminateSession();
    await until(() => upstream.sessions.size === 0);
  });

  test("both bridges back to back, at both in turn", async () => {
    const upstream = new SseUpstream(world);
    await cleanups.listen(upstream.server, path.join(folder, "egress.sock"));
    const balance = inTurn();
    const core = new Front(
      () => replicas[balance()]?.serversSocket ?? "",
      (headers) => ({ ...headers, ...upstreamHeaders }),
      () => "/base/sse",
    );
    await cleanups.listen(core.server, path.join(folder, "gateway.sock"));
    await exercised(await sseClient(inTurn()));
  });
});
