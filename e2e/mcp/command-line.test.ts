/** The command line's part of the MCP gateway, with the real Envoy and the official server. */
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ToolsView } from "../../src/gateway/mcp-tools.ts";
import { type EverythingServer, startEverything } from "../support/mcp/everything.ts";
import { mcpKeyYaml, mcpProviderYaml } from "../support/mcp/resources.ts";
import { freePort, Stack, svc } from "../support/stack.ts";

let stack: Stack;
let server: EverythingServer;
let old: EverythingServer;
let home: string;

beforeAll(async () => {
  home = mkdtempSync(path.join(os.tmpdir(), "svc-e2e-cli-"));
  server = await startEverything("streamableHttp");
  old = await startEverything("sse");
  const spec = ["policy: {mcp: {deniedTools: [get-env]}}"];
  const gone = `http://127.0.0.1:${await freePort()}/mcp`;
  stack = await Stack.start({
    files: {
      "servers.yaml": [
        mcpProviderYaml("everything", { url: server.url, spec }),
        mcpProviderYaml("old", { url: old.url, transport: "sse" }),
        mcpProviderYaml("gone", { url: gone }),
        mcpProviderYaml("closed", { url: gone, spec: ["externalAccess: {enabled: false}"] }),
      ].join("---\n"),
      "keys.yaml": [
        mcpKeyYaml("all", "everything"),
        mcpKeyYaml("echoes", "everything", ["restrictions: {allowedMcpTools: [echo, get-env]}"]),
        mcpKeyYaml("revoked", "everything", ["revoked: true"]),
        mcpKeyYaml("other", "old"),
      ].join("---\n"),
    },
    args: ["--mcp-allowed-host", "svc.example.com", "--mcp-allowed-origin", "https://a.example"],
  });
});

afterAll(async () => {
  await stack?.stop();
  await server?.stop();
  await old?.stop();
  rmSync(home, { recursive: true, force: true });
});

const run = (...args: string[]) =>
  svc([...args, "--state-dir", stack.stateDir], { XDG_CONFIG_HOME: home });

const create = (name: string, provider: string, ...flags: string[]) =>
  run("access-key", "create", "--name", name, "--provider", provider, ...flags);

test("svc get tools: what a server offers, and who may use it", async () => {
  const { code, stdout, stderr } = await run("get", "tools", "everything", "-o", "json");
  expect([code, stderr]).toEqual([0, ""]);
  const { tools } = JSON.parse(stdout) as ToolsView;
  const tool = (name: string) => tools.find((one) => one.name === name);
  expect(tool("echo")).toMatchObject({ allowed: true, keys: ["all", "echoes"] });
  expect(tool("get-env")).toMatchObject({ allowed: false, keys: [] });
  expect(tool("get-sum")).toMatchObject({ allowed: true, keys: ["all"] });
  expect(tools.length).toBeGreaterThan(5);
  const table = (await run("get", "tools", "everything")).stdout;
  expect(table).toMatch(/^TOOL +PROVIDER +KEYS\n/);
  expect(table).toMatch(/^echo +allowed +all,echoes$/m);
  expect(table).toMatch(/^get-env +denied +-$/m);
});

test("svc get tools: a server of the old transport", async () => {
  const { code, stdout, stderr } = await run("get", "tools", "old");
  expect([code, stderr]).toEqual([0, ""]);
  expect(stdout).toMatch(/^echo +allowed +other$/m);
});

test.each([
  ["gone", "The MCP server of the Provider gone answered 503."],
  ["closed", "set spec.externalAccess.enabled to true"],
  ["missing", "there is no Provider missing of type mcp in namespace default"],
])("svc get tools %s says why not", async (name, message) => {
  const { code, stdout, stderr } = await run("get", "tools", name);
  expect([code, stdout]).toEqual([1, ""]);
  expect(stderr).toContain(message);
});

test("a key of the command line works in a client with the printed configuration", async () => {
  const tools = ["--allowed-mcp-tool", "echo", "--allowed-mcp-tool", "get-sum"];
  const created = await create("made", "everything", ...tools, "--denied-mcp-tool", "get-sum");
  expect(created.stderr).toBe("AccessKey made created. Its key is not shown again.\n");
  const env = { XDG_CONFIG_HOME: home };
  const key = created.stdout.trim();
  const flags = ["--name", "made", "--access-key", key];
  expect((await svc(["login", stack.externalUrl, ...flags], env)).code).toBe(0);
  const { stdout } = await svc(["gateway", "mcp", "everything", "--key", "made"], env);
  const { mcpServers } = JSON.parse(stdout) as {
    readonly mcpServers: Readonly<
      Record<string, { readonly url: string; readonly headers: Record<string, string> }>
    >;
  };
  const { url = "", headers = {} } = mcpServers["everything"] ?? {};
  expect(headers["Authorization"]).toBe(`Bearer ${key}`);
  const client = new Client({ name: "test", version: "1" }, { capabilities: {} });
  const streamable = new URL(url.replace(/\/sse$/, ""));
  await client.connect(new StreamableHTTPClientTransport(streamable, { requestInit: { headers } }));
  expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(["echo"]);
  await client.close();
  const listed = (await run("access-key", "list", "-o", "wide")).stdout;
  expect(listed).toMatch(/^made +everything +yes +Ready .*echo,get-sum +get-sum +-$/m);
  const offered = (await run("get", "tools", "everything")).stdout;
  expect(offered).toMatch(/^echo +allowed +all,echoes,made$/m);
});

test("a key for a Provider without external access says so", async () => {
  const { code, stderr } = await create("unused", "closed");
  expect(code).toBe(0);
  expect(stderr).toContain("It is not in use: ");
});

test("svc get providers -o wide", async () => {
  const { stdout } = await run("get", "providers", "-o", "wide");
  expect(stdout).toMatch(new RegExp(`^old +mcp .* sse +${old.url} +yes`, "m"));
  expect(stdout).toMatch(/^closed +mcp .* http +\S+ +no/m);
});

test("hosts and origins are those of the flags", async () => {
  const ask = (headers: Record<string, string>) =>
    fetch(`${stack.externalUrl}/ext/mcp/everything`, { method: "POST", headers });
  const code = async (response: Response): Promise<string> =>
    ((await response.json()) as { error: { data: { code: string } } }).error.data.code;
  expect(await code(await ask({ origin: "https://b.example" }))).toBe("origin_not_allowed");
  const allowed = await ask({ origin: "https://a.example" });
  expect(await code(allowed)).not.toBe("origin_not_allowed");
  expect(allowed.headers.get("access-control-allow-origin")).toBe("https://a.example");
});
