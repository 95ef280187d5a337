/**
 * MCP in a cluster: official clients outside call a server through two replicas of the gateway, and
 * an agent calls it, and a server inside its sidecar. The policy is that of one Provider.
 */
import { createHash, randomBytes } from "node:crypto";
import dgram from "node:dgram";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { ToolsView } from "../../src/cli/backend.ts";
import { install, manifest, secret, SYSTEM, uninstall } from "../support/cluster/installation.ts";
import { attachLab, type Lab } from "../support/cluster/lab.ts";
import { svc } from "../support/cluster/svc.ts";
import { CLIENTS, type TestClient } from "../support/mcp/clients.ts";
import { type EverythingServer, startEverything } from "../support/mcp/everything.ts";
import { type Forwarded, reverseProxy } from "../support/mcp/reverse-proxy.ts";
import { rawKey } from "../support/resources.ts";
import { Outside } from "../support/services.ts";
import { eventually, until } from "../support/wait.ts";

const HOST = "mcp.example.com";
const TOKEN = `token-${randomBytes(18).toString("hex")}`;
const namespace = `mcp-${randomBytes(4).toString("hex")}`;
const folder = mkdtempSync(path.join(os.tmpdir(), "svc-cluster-"));
const arrived: Forwarded[] = [];
let lab: Lab;
let server: EverythingServer;
let outside: Outside;

const kubectl = (...args: readonly string[]): Promise<string> =>
  lab.kubectl(["--namespace", namespace, ...args]);
const system = (...args: readonly string[]): Promise<string> =>
  lab.kubectl(["--namespace", SYSTEM, ...args]);

/** An MCP server of the transport stdio, small enough for the argument of a command. */
const LINES = `
const rl = require("readline").createInterface({ input: process.stdin });
rl.on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const text = (words) => ({ content: [{ type: "text", text: words }] });
  const results = {
    initialize: () => ({
      protocolVersion: params.protocolVersion,
      capabilities: { tools: {} },
      serverInfo: { name: "lines", version: "1" },
    }),
    "tools/list": () => ({
      tools: ["echo", "get-env", "get-sum"].map((name) => ({ name, inputSchema: { type: "object" } })),
    }),
    "tools/call": () => text(params.name === "get-env" ? JSON.stringify(process.env) : "from the pod"),
  };
  console.log(JSON.stringify({ jsonrpc: "2.0", id, result: (results[method] ?? (() => ({})))() }));
});`;

const accessKey = (name: string, restrictions: object = {}): string =>
  manifest("AccessKey", name, {
    provider: "everything",
    keySHA256: createHash("sha256").update(rawKey(name)).digest("hex"),
    restrictions,
  });

/** Addresses of the gateway's pods that are ready, at the port for callers outside. */
async function replicas(): Promise<readonly string[]> {
  const text = await system(
    "get",
    "endpointslices",
    "--selector=kubernetes.io/service-name=svc-gateway-external",
    "--output=jsonpath={.items[*].endpoints[?(@.conditions.ready==true)].addresses[0]}",
  );
  const addresses = text.split(" ").filter((address) => address !== "");
  return addresses.map((address) => `http://${address}:8080/ext/mcp/everything`);
}

/** A client whose requests go to each replica in turn. */
const connect = async (
  version: keyof typeof CLIENTS,
  key: string,
  transport: "http" | "sse" = "http",
): Promise<TestClient> => CLIENTS[version]({ urls: await replicas(), key: rawKey(key), transport });

interface Step {
  readonly name: string;
  readonly value?: unknown;
  readonly code?: number;
  readonly message?: string;
}

/** Runs the official client in the agent's container. @param variable that holds the URL */
async function inAgent(variable: string, ...steps: readonly string[]): Promise<Map<string, Step>> {
  const exec = ["exec", "deployment/svc-coder", "--container", "agent", "--"];
  const text = await kubectl(...exec, "node", "/agent/mcp-sdk.mjs", variable, "http", ...steps);
  const lines = text.trim().split("\n");
  return new Map(lines.map((line) => JSON.parse(line) as Step).map((step) => [step.name, step]));
}

beforeAll(async () => {
  lab = attachLab();
  server = await startEverything("streamableHttp");
  const tls = net.createServer().listen(443, lab.hostAddress);
  await once(tls, "listening");
  outside = await Outside.start([HOST], lab.hostAddress, {
    dns: dgram.createSocket("udp4").bind(0, "127.0.0.1"),
    tls,
  });
  outside.streaming = reverseProxy(() => server.port, arrived);
  outside.writeCa(path.join(folder, "ca.crt"));
  await lab.setHosts({ [HOST]: lab.hostAddress });
  for (const one of [SYSTEM, namespace]) {
    await lab.kubectl(["create", "namespace", one]);
    const roots = ["create", "configmap", "test-roots", `--from-file=${folder}/ca.crt`];
    await lab.kubectl(["--namespace", one, ...roots]);
  }
  await install(lab, {
    values: {
      "gateway.replicas": 2,
      "gateway.upstreamCaConfigMap": "test-roots",
      "agents.sidecar.upstreamCaConfigMap": "test-roots",
      "redis.enabled": true,
      "redis.image.registry": "localhost",
      "redis.image.repository": "redis",
      "redis.image.tag": "dev",
    },
  });
  await lab.kubectl(
    ["--namespace", namespace, "apply", "-f", "-"],
    [
      secret("everything", { token: TOKEN }),
      manifest("Provider", "everything", {
        type: "mcp",
        mcp: { url: `https://${HOST}/mcp` },
        auth: { type: "api-key", secretRef: "everything" },
        policy: { mcp: { deniedTools: ["get-env"] } },
        externalAccess: { enabled: true },
      }),
      secret("lines", { LINES_TOKEN: "of-the-server-in-the-pod" }),
      manifest("Provider", "lines", {
        type: "mcp",
        mcp: { transport: "stdio", command: ["/usr/local/bin/node", "--eval", LINES] },
        auth: { type: "environment", secretRef: "lines" },
        policy: { mcp: { deniedTools: ["get-sum"] } },
      }),
      accessKey("laptop"),
      accessKey("reader", { allowedMcpTools: ["echo"] }),
      manifest("Agent", "coder", {
        image: "localhost/agent:dev",
        imagePullPolicy: "Never",
        models: [],
        providers: ["everything", "lines"],
      }),
    ].join(""),
  );
  for (const place of ["provider/everything", "accesskey/laptop", "accesskey/reader"])
    await kubectl("wait", "--for=condition=Ready", place, "--timeout=180s");
  await kubectl("wait", "--for=condition=Ready", "agent/coder", "--timeout=180s");
});

afterAll(async () => {
  await lab.kubectl(["delete", "namespace", namespace, "--ignore-not-found"]);
  await uninstall(lab);
  await lab.setHosts({});
  await outside.close();
  await server.stop();
  rmSync(folder, { recursive: true });
});

beforeEach(() => {
  arrived.length = 0;
});

test.each(["present", "next"] as const)(
  "the TypeScript client, %s: a session on both replicas, with the server's own token",
  async (version) => {
    const client = await connect(version, "laptop");
    const tools = await client.listTools();
    expect(tools).toContain("echo");
    expect(tools).not.toContain("get-env");
    for (const message of ["one", "two", "three"])
      expect(await client.callTool("echo", { message })).toContain(message);
    await expect(client.callTool("get-env")).rejects.toThrow("not allowed by the policy");
    await client.close();
    expect(new Set(arrived.map(({ headers }) => headers.authorization))).toEqual(
      new Set([`Bearer ${TOKEN}`]),
    );
  },
);

test("a client of the older transport, whose messages reach the other replica over Redis", async () => {
  const client = await connect("present", "laptop", "sse");
  for (const message of ["one", "two", "three"])
    expect(await client.callTool("echo", { message })).toContain(message);
  await client.close();
});

test("a key narrows the policy further", async () => {
  const client = await connect("present", "reader");
  expect(await client.listTools()).toEqual(["echo"]);
  await expect(client.callTool("get-sum", { a: 1, b: 2 })).rejects.toThrow("not allowed");
  await client.close();
});

test("a session goes on when a replica is gone", async () => {
  // What a load balancer would do: requests alternate between the addresses in this list.
  const urls = [...(await replicas())];
  expect(urls).toHaveLength(2);
  const client = await CLIENTS.present({ urls, key: rawKey("laptop"), transport: "http" });
  for (const message of ["one", "two"])
    expect(await client.callTool("echo", { message })).toContain(message);
  const pods = ["get", "pods", "--selector=app.kubernetes.io/component=gateway"];
  const [address, name] = (
    await system(...pods, "--output=jsonpath={.items[0].status.podIP} {.items[0].metadata.name}")
  ).split(" ");
  urls.splice(0, 2, ...urls.filter((url) => !url.includes(`//${address}:`)));
  expect(urls).toHaveLength(1);
  await system("delete", "pod", name as string);
  for (const message of ["three", "four"])
    expect(await client.callTool("echo", { message })).toContain(message);
  await client.close();
  await system("rollout", "status", "deployment/svc-gateway", "--timeout=180s");
});

test("the agent's own client: the same policy through its sidecar", async () => {
  const done = await inAgent(
    "SVC_MCP_EVERYTHING_URL",
    "connect",
    "list",
    "echo",
    "env",
    "progress",
  );
  expect(done.get("connect")?.value).toMatch(/everything/i);
  expect(done.get("list")?.value).toContain("echo");
  expect(done.get("list")?.value).not.toContain("get-env");
  expect(done.get("echo")?.value).toContain("hi");
  expect(done.get("env")).toMatchObject({ code: 403 });
  expect(done.get("progress")?.value).toMatchObject({ seen: [1, 2, 3] });
  expect(new Set(arrived.map(({ headers }) => headers.authorization))).toEqual(
    new Set([`Bearer ${TOKEN}`]),
  );
});

test("a server inside the sidecar, with its own environment and nothing of the sidecar's", async () => {
  const done = await inAgent("SVC_MCP_LINES_URL", "connect", "list", "echo", "env", "sum");
  expect(done.get("connect")?.value).toBe("lines");
  expect(done.get("list")?.value).toEqual(["echo", "get-env"]);
  expect(done.get("echo")?.value).toBe("from the pod");
  const environment = JSON.parse(String(done.get("env")?.value)) as Record<string, string>;
  expect(Object.keys(environment).toSorted()).toEqual(["HOME", "LINES_TOKEN", "PATH"]);
  expect(done.get("sum")?.message).toMatch(/get-sum is not allowed by the policy/);
  expect(arrived).toEqual([]);
});

test("a policy edit is in force for both tiers, and no pod restarts", async () => {
  const pods = (): Promise<string> => kubectl("get", "pods", "-o", "name");
  const before = await pods();
  const deny = (tools: readonly string[]): Promise<string> => {
    const patch = { spec: { policy: { mcp: { deniedTools: tools } } } };
    return kubectl("patch", "provider/everything", "--type=merge", "-p", JSON.stringify(patch));
  };
  await deny(["get-env", "echo"]);
  await eventually(async () => {
    const client = await connect("present", "laptop");
    try {
      expect(await client.listTools()).not.toContain("echo");
    } finally {
      await client.close();
    }
    const done = await inAgent("SVC_MCP_EVERYTHING_URL", "connect", "echo");
    expect(done.get("echo")).toMatchObject({ code: 403 });
  });
  expect(await pods()).toBe(before);
  await deny(["get-env"]);
  await eventually(async () => {
    const done = await inAgent("SVC_MCP_EVERYTHING_URL", "connect", "echo");
    expect(done.get("echo")?.value).toContain("hi");
  });
});

const run = async (...args: readonly string[]): Promise<string> => {
  const { stdout, stderr, code } = await svc(lab.kubeconfig, [...args, "-n", namespace]);
  expect({ code, stderr }).toMatchObject({ code: 0 });
  return stdout;
};

test("svc get tools shows what the server offers, and who may use it", async () => {
  const view = JSON.parse(await run("get", "tools", "everything", "-o", "json")) as ToolsView;
  expect(view).toMatchObject({ namespace, provider: "everything", enforcement: "enforce" });
  const named = (name: string) => view.tools.find((tool) => tool.name === name);
  expect(named("echo")).toMatchObject({ allowed: true, keys: ["laptop", "reader"] });
  expect(named("get-sum")).toMatchObject({ allowed: true, keys: ["laptop"] });
  expect(named("get-env")).toMatchObject({ allowed: false, keys: [] });
  const { code, stderr } = await svc(lab.kubeconfig, ["get", "tools", "none", "-n", namespace]);
  expect([code, stderr]).toEqual([
    1,
    `svc: there is no Provider none of type mcp in namespace ${namespace}\n`,
  ]);
});

test("calls are in the audit chain, and today's requests in the statuses", async () => {
  const records = await run("audit", "ext:laptop", "-o", "json");
  expect(
    records
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as object),
  ).toContainEqual(
    expect.objectContaining({
      type: "TOOL_CALL",
      fields: expect.objectContaining({
        workload: "ext:laptop",
        source: "external",
        access_key: `${namespace}/laptop`,
        provider: "everything",
        tool: "echo",
        allowed: true,
      }) as unknown,
    }),
  );
  for (const place of ["provider/everything", "accesskey/laptop"])
    await until(
      async () => Number(await kubectl("get", place, "-o", "jsonpath={.status.requestsToday}")) > 0,
      { what: `the requests of ${place}` },
    );
});
