/** Connections that are cut, processes that are killed, servers that are started again. */
import http from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import { CLIENTS } from "../support/mcp/clients.ts";
import { type ConformanceServer, startConformanceServer } from "../support/mcp/conformance.ts";
import { type EverythingServer, startEverything } from "../support/mcp/everything.ts";
import { mcpKeyYaml, mcpProviderYaml } from "../support/mcp/resources.ts";
import { ScriptedServer } from "../support/mcp/scripted.ts";
import { TcpProxy } from "../support/redis.ts";
import { rawKey } from "../support/resources.ts";
import { Stack } from "../support/stack.ts";
import { until } from "../support/wait.ts";

let stack: Stack;
let server: EverythingServer;
let scripted: ScriptedServer;
/** Keeps events, so that streams can be resumed. */
let resumable: ConformanceServer;
/** Between the clients and the gateway. */
let proxy: TcpProxy;

beforeAll(async () => {
  server = await startEverything("streamableHttp");
  scripted = await ScriptedServer.start();
  resumable = await startConformanceServer();
  stack = await Stack.start({
    files: {
      "server.yaml": mcpProviderYaml("server", {
        url: server.url,
        spec: ["policy: {mcp: {deniedTools: [get-env]}}"],
      }),
      "key.yaml": mcpKeyYaml("laptop", "server"),
      "resumable.yaml": mcpProviderYaml("resumable", { url: resumable.url }),
      "resumable-key.yaml": mcpKeyYaml("to-resumable", "resumable"),
      "scripted.yaml": mcpProviderYaml("scripted", { url: scripted.url }),
      "scripted-key.yaml": mcpKeyYaml("to-scripted", "scripted"),
    },
  });
  proxy = await TcpProxy.start(stack.externalPort);
});

afterAll(async () => {
  await proxy?.stop();
  await stack?.stop();
  await scripted?.stop();
  await resumable?.stop();
  await server?.stop();
});

const connect = (version: keyof typeof CLIENTS, origin: string) =>
  CLIENTS[version]({
    urls: [`${origin}/ext/mcp/server`],
    key: rawKey("laptop"),
    transport: "http",
  });

test.each(["present", "next"] as const)(
  "client %s resumes a call whose connection was cut",
  async (version) => {
    const client = await CLIENTS[version]({
      urls: [`http://127.0.0.1:${proxy.port}/ext/mcp/resumable`],
      key: rawKey("to-resumable"),
      transport: "http",
    });
    const seen: number[] = [];
    const answer = await client.callTool(
      "slow",
      {},
      {
        onprogress: ({ progress }) => {
          seen.push(progress);
          if (progress === 2) proxy.cut();
        },
      },
    );
    expect(answer).toContain("completed");
    expect(seen).toEqual([1, 2, 3, 4, 5]);
    await client.close();
  },
  30_000,
);

test.each(["present", "next"] as const)(
  "client %s continues its session after the gateway was killed",
  async (version) => {
    const client = await connect(version, stack.externalUrl);
    await client.callTool("echo", { message: "before" });
    process.kill(stack.pids().gateway, "SIGKILL");
    await until(() => stack.pids().gateway === 0, { what: "the gateway to end" });
    await stack.settled();
    expect(await client.callTool("echo", { message: "after" })).toContain("after");
    expect(await client.listTools()).not.toContain("get-env");
    await client.close();
  },
  60_000,
);

test("a session that the server has lost is reported, and a new one works", async () => {
  const client = await connect("present", stack.externalUrl);
  const { port } = server;
  await server.stop();
  await expect(client.callTool("echo", { message: "x" })).rejects.toThrow(/could not be reached/);
  server = await startEverything("streamableHttp", port);
  await expect(client.callTool("echo", { message: "x" })).rejects.toMatchObject({ code: 404 });
  const again = await connect("present", stack.externalUrl);
  expect(await again.callTool("echo", { message: "new" })).toContain("new");
  await again.close();
});

test("a client that leaves ends the server's work", async () => {
  let isClosed = false;
  scripted.answer = () => ({
    open: true,
    body: ": waiting\n\n",
    headers: { "content-type": "text/event-stream" },
  });
  scripted.closed = () => (isClosed = true);
  const request = http.request(`${stack.externalUrl}/ext/mcp/scripted`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${rawKey("to-scripted")}`,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
    },
  });
  request.on("error", () => undefined);
  request.end('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}');
  await new Promise((resolve) =>
    request.once("response", (response) => response.once("data", resolve)),
  );
  expect(isClosed).toBe(false);
  request.destroy();
  await until(() => isClosed, { what: "the server's request to end" });
});

test("a gateway that ends lets a call finish, and does not wait for open streams", async () => {
  const own = await Stack.start({
    files: {
      "resumable.yaml": mcpProviderYaml("resumable", { url: resumable.url }),
      "key.yaml": mcpKeyYaml("laptop", "resumable"),
    },
  });
  const client = await CLIENTS.present({
    urls: [`${own.externalUrl}/ext/mcp/resumable`],
    key: rawKey("laptop"),
    transport: "http",
  });
  // Its stream is open from now on.
  await client.callTool("test_simple_text");
  expect((await own.status()).activeCalls).toBe(0);
  let stopped: Promise<unknown> | undefined;
  const onprogress = (): void => void (stopped ??= own.stop());
  expect(await client.callTool("slow", {}, { onprogress })).toContain("completed");
  await stopped;
  expect(own.logs).not.toContain("were cut off");
}, 300_000);
