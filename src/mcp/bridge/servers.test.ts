/** SDK clients of Streamable HTTP, through the bridge, to an SDK server of HTTP+SSE. */
import path from "node:path";
import type { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { afterEach, beforeEach, expect, test } from "vitest";
import { until } from "../../../e2e/support/wait.ts";
import {
  callText,
  Cleanups,
  createClient,
  Front,
  Replica,
  SseUpstream,
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

async function upstreamOf(): Promise<SseUpstream> {
  const upstream = new SseUpstream(world);
  await cleanups.listen(upstream.server, path.join(folder, "egress.sock"));
  return upstream;
}

async function frontOf(socket: () => string, owner = "key/server"): Promise<Front> {
  const front = new Front(
    socket,
    (headers) => ({
      ...headers,
      host: "mcp.test",
      authorization: "Bearer upstream",
      "x-svc-mcp-owner": owner,
      "x-svc-mcp-egress": "cluster",
    }),
    () => "/base/sse?tenant=1",
  );
  await cleanups.listen(front.server, 0);
  return front;
}

async function connected(
  front: Front,
): Promise<{ client: Client; told: string[]; transport: StreamableHTTPClientTransport }> {
  const { client, told } = createClient();
  cleanups.add(() => client.close());
  const transport = new StreamableHTTPClientTransport(front.url("/ext/mcp/test"));
  await client.connect(transport);
  return { client, told, transport };
}

test("list, call, progress", async () => {
  const upstream = await upstreamOf();
  const replica = await Replica.start(cleanups, folder);
  const { client, transport } = await connected(await frontOf(() => replica.serversSocket));
  expect(transport.sessionId).toMatch(/^[\w-]{43}$/);
  expect((await client.listTools()).tools.map(({ name }) => name)).toContain("echo");
  expect(await callText(client, "echo", { text: "Grüße\n\u2028" })).toBe("Grüße\n\u2028");
  const progress: number[] = [];
  await client.callTool({ name: "progress", arguments: {} }, undefined, {
    onprogress: (step) => progress.push(step.progress),
  });
  expect(progress).toEqual([1, 2, 3]);
  expect(upstream.requests[0]?.url).toBe("/base/sse?tenant=1");
  for (const { headers } of upstream.requests) {
    expect(headers).toMatchObject({
      host: "mcp.test",
      authorization: "Bearer upstream",
      "x-svc-relay": "cluster",
    });
    expect(Object.keys(headers).filter((name) => name.startsWith("x-svc-mcp"))).toEqual([]);
  }
  expect(replica.defects).toEqual([]);
});

test("the server asks: sampling, elicitation, roots, ping", async () => {
  await upstreamOf();
  const replica = await Replica.start(cleanups, folder);
  const { client } = await connected(await frontOf(() => replica.serversSocket));
  expect(await callText(client, "sample")).toContain("Sampled");
  expect(await callText(client, "elicit")).toBe("decline");
  expect(await callText(client, "roots")).toBe("file:///root");
  expect(await callText(client, "ping")).toBe("pong");
});

test("the server's own notifications arrive over GET", async () => {
  await upstreamOf();
  const replica = await Replica.start(cleanups, folder);
  const { told } = await connected(await frontOf(() => replica.serversSocket));
  world.servers[0]?.sendToolListChanged();
  await until(() => told.length > 0);
  expect(told).toEqual(["tools/list_changed"]);
});

test("a cancellation reaches the server; a disconnect does not cancel", async () => {
  await upstreamOf();
  const replica = await Replica.start(cleanups, folder);
  const { client } = await connected(await frontOf(() => replica.serversSocket));
  const abort = new AbortController();
  const call = client.callTool({ name: "wait", arguments: {} }, undefined, {
    signal: abort.signal,
  });
  await until(() => world.started.length === 1);
  abort.abort();
  await expect(call).rejects.toThrow();
  await until(() => world.cancelled.length === 1);
});

test("DELETE ends the upstream's stream", async () => {
  const upstream = await upstreamOf();
  const replica = await Replica.start(cleanups, folder);
  const { transport } = await connected(await frontOf(() => replica.serversSocket));
  expect(upstream.sessions.size).toBe(1);
  expect(await replica.sessions("servers")).toBe(1);
  await transport.terminateSession();
  await until(() => upstream.sessions.size === 0);
  expect(await replica.sessions("servers")).toBe(0);
});
