/** MCP servers of agents, under `svc run`: the official client, and servers outside. */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { Machine } from "../support/clients/machine.ts";
import { EVERYTHING, type EverythingServer, startEverything } from "../support/mcp/everything.ts";
import { type Forwarded, reverseProxy } from "../support/mcp/reverse-proxy.ts";

const TOKEN = "token-of-the-mcp-server-0123456789";

const provider = (name: string, spec: object): object => ({
  apiVersion: "svc.io/v1",
  kind: "Provider",
  metadata: { name },
  spec: { type: "mcp", ...spec },
});

let machine: Machine;
let server: EverythingServer;
const arrived: Forwarded[] = [];

beforeAll(async () => {
  server = await startEverything("streamableHttp");
  machine = await Machine.start({
    hosts: ["mcp.example.com"],
    resources: [
      {
        apiVersion: "v1",
        kind: "Secret",
        metadata: { name: "everything" },
        stringData: { token: TOKEN },
      },
      provider("every-thing", {
        mcp: { url: "https://mcp.example.com/mcp" },
        auth: { type: "api-key", secretRef: "everything" },
        policy: { mcp: { deniedTools: ["get-env"] } },
      }),
      provider("local", {
        mcp: { transport: "stdio", command: [process.execPath, EVERYTHING, "stdio"] },
        auth: { type: "environment", secretRef: "local" },
        policy: { mcp: { deniedTools: ["get-sum"] } },
      }),
      {
        apiVersion: "v1",
        kind: "Secret",
        metadata: { name: "local" },
        stringData: { EVERYTHING_TOKEN: "value-of-the-local-server" },
      },
      {
        apiVersion: "svc.io/v1",
        kind: "Agent",
        metadata: { name: "coder" },
        spec: { models: [], providers: ["every-thing", "local"] },
      },
    ],
  });
  machine.outside.streaming = reverseProxy(() => server.port, arrived);
}, 120_000);

afterAll(async () => {
  await machine?.stop();
  await server?.stop();
});

beforeEach(() => {
  arrived.length = 0;
});

interface Step {
  readonly name: string;
  readonly value?: unknown;
  readonly code?: number;
  readonly message?: string;
}

async function steps(...args: readonly string[]): Promise<Map<string, Step>> {
  const command = [machine.node, machine.client("mcp-sdk.mjs"), ...args];
  const { code, stdout, stderr } = await machine.run(command, { agent: "coder" });
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const lines = stdout.trim().split("\n");
  return new Map(lines.map((line) => JSON.parse(line) as Step).map((step) => [step.name, step]));
}

test("a server with a URL: list, call, denied call, progress, cancellation, questions of the server", async () => {
  const done = await steps(
    "SVC_MCP_EVERY_THING_URL",
    "http",
    "connect",
    "list",
    "echo",
    "env",
    "progress",
    "cancel",
    "sampling",
    "elicitation",
    "echo",
  );
  expect(done.get("connect")?.value).toMatch(/everything/i);
  expect(done.get("list")?.value).toContain("echo");
  expect(done.get("list")?.value).not.toContain("get-env");
  expect(done.get("echo")?.value).toContain("hi");
  expect(done.get("env")).toMatchObject({ code: 403 });
  expect(done.get("env")?.message).toMatch(/get-env is not allowed by the policy/);
  expect(done.get("progress")?.value).toMatchObject({ seen: [1, 2, 3] });
  expect(done.get("cancel")?.value).toBe("cancelled");
  expect(done.get("sampling")?.value).toContain("sampled by the agent");
  expect(done.get("elicitation")?.value).toMatch(/decline/i);
  expect(new Set(arrived.map(({ headers }) => headers.authorization))).toEqual(
    new Set([`Bearer ${TOKEN}`]),
  );
  const names = arrived.flatMap(({ headers }) => Object.keys(headers));
  expect(names.filter((name) => name.startsWith("x-svc-"))).toEqual([]);
}, 60_000);

test("a server in the sidecar: list, call, denied call, environment, progress, questions of the server", async () => {
  const done = await steps(
    "SVC_MCP_LOCAL_URL",
    "http",
    "connect",
    "list",
    "echo",
    "env",
    "sum",
    "progress",
    "cancel",
    "sampling",
    "elicitation",
    "close",
  );
  expect(done.get("connect")?.value).toMatch(/everything/i);
  expect(done.get("list")?.value).toContain("echo");
  expect(done.get("list")?.value).not.toContain("get-sum");
  expect(done.get("echo")?.value).toContain("hi");
  expect(done.get("sum")?.message).toMatch(/get-sum is not allowed by the policy/);
  const environment = JSON.parse(String(done.get("env")?.value)) as Record<string, string>;
  expect(Object.keys(environment).toSorted()).toEqual(["EVERYTHING_TOKEN", "HOME", "PATH"]);
  expect(done.get("progress")?.value).toMatchObject({ seen: [1, 2, 3] });
  expect(done.get("cancel")?.value).toBe("cancelled");
  expect(done.get("sampling")?.value).toContain("sampled by the agent");
  expect(done.get("elicitation")?.value).toMatch(/decline/i);
  expect(arrived).toEqual([]);
}, 60_000);
