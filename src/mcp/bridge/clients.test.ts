/** SDK clients of the old transport, through the bridge, to an SDK server of Streamable HTTP. */
import path from "node:path";
import type { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { until } from "../../../e2e/support/wait.ts";
import {
  callText,
  Cleanups,
  createClient,
  Front,
  Replica,
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

async function gateway(
  options: ConstructorParameters<typeof StreamableUpstream>[1] = {},
): Promise<StreamableUpstream> {
  const upstream = new StreamableUpstream(world, options);
  await cleanups.listen(upstream.server, path.join(folder, "gateway.sock"));
  return upstream;
}

async function frontOf(replica: Replica, owner = "key/server"): Promise<Front> {
  const front = new Front(
    () => replica.clientsSocket,
    (headers) => ({ ...headers, "x-svc-mcp-owner": owner }),
  );
  await cleanups.listen(front.server, 0);
  return front;
}

async function connected(
  front: Front,
): Promise<{ readonly client: Client; readonly told: string[] }> {
  const { client, told } = createClient();
  cleanups.add(() => client.close());
  const url = front.url("/ext/mcp/test/sse");
  await client.connect(
    new SSEClientTransport(url, { requestInit: { headers: { authorization: "Bearer key" } } }),
  );
  return { client, told };
}

describe.each([{ json: false }, { json: true }])("answers as JSON: $json", ({ json }) => {
  test("list, call, progress", async () => {
    const upstream = await gateway({ json });
    const replica = await Replica.start(cleanups, folder);
    const { client } = await connected(await frontOf(replica));
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain("echo");
    expect(await callText(client, "echo", { text: "Grüße\n\u2028" })).toBe("Grüße\n\u2028");
    if (!json) {
      const progress: number[] = [];
      await client.callTool({ name: "progress", arguments: {} }, undefined, {
        onprogress: (step) => progress.push(step.progress),
      });
      expect(progress).toEqual([1, 2, 3]);
    }
    for (const { headers, url } of upstream.requests) {
      expect(url).toBe("/ext/mcp/test");
      expect(headers.authorization).toBe("Bearer key");
      expect(headers["x-svc-mcp-owner"]).toBeUndefined();
    }
    expect(upstream.requests.at(-1)?.headers["mcp-protocol-version"]).toBe("2025-11-25");
    expect(replica.defects).toEqual([]);
  });
});

test("the server asks: sampling, elicitation, roots, ping", async () => {
  await gateway();
  const replica = await Replica.start(cleanups, folder);
  const { client } = await connected(await frontOf(replica));
  expect(await callText(client, "sample")).toContain("Sampled");
  expect(await callText(client, "elicit")).toBe("decline");
  expect(await callText(client, "roots")).toBe("file:///root");
  expect(await callText(client, "ping")).toBe("pong");
});

test("the server's own notifications arrive over its stream", async () => {
  const upstream = await gateway();
  const replica = await Replica.start(cleanups, folder);
  const { told } = await connected(await frontOf(replica));
  await until(() => upstream.requests.some(({ method }) => method === "GET"));
  await until(() => {
    world.servers[0]?.sendToolListChanged();
    return told.length > 0;
  });
  expect(told[0]).toBe("tools/list_changed");
});

test("a cancellation overtakes the answer", async () => {
  await gateway();
  const replica = await Replica.start(cleanups, folder);
  const { client } = await connected(await frontOf(replica));
  const abort = new AbortController();
  const call = client.callTool({ name: "wait", arguments: {} }, undefined, {
    signal: abort.signal,
  });
  await until(() => world.started.length === 1);
  abort.abort();
  await expect(call).rejects.toThrow();
  await until(() => world.cancelled.length === 1);
});

test("the client's end deletes the session", async () => {
  const upstream = await gateway();
  const replica = await Replica.start(cleanups, folder);
  const { client } = await connected(await frontOf(replica));
  expect(upstream.sessions.size).toBe(1);
  expect(await replica.sessions("clients")).toBe(1);
  await client.close();
  await until(() => upstream.sessions.size === 0);
  expect(await replica.sessions("clients")).toBe(0);
  expect(replica.clock.pending).toEqual([]);
});
