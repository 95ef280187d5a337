/** MCP servers of agents, under `svc run`: the official client, and servers outside. */
import path from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { ROOT } from "../support/build.ts";
import { Machine } from "../support/clients/machine.ts";
import { EVERYTHING, type EverythingServer, startEverything } from "../support/mcp/everything.ts";
import { type Forwarded, reverseProxy } from "../support/mcp/reverse-proxy.ts";

const LINE_SERVER = path.join(ROOT, "e2e/support/mcp/line-server.mjs");
const TOKEN = "token-of-the-mcp-server-0123456789";

const provider = (name: string, spec: object): object => ({
  apiVersion: "svc.io/v1",
  kind: "Provider",
  metadata: { name },
  spec: { type: "mcp", ...spec },
});

let machine: Machine;
let server: EverythingServer;
let oldServer: EverythingServer;
const arrived: Forwarded[] = [];

beforeAll(async () => {
  server = await startEverything("streamableHttp");
  oldServer = await startEverything("sse");
  machine = await Machine.start({
    hosts: ["mcp.example.com", "old.example.com"],
    shared: {
      "mcp-present": path.join(ROOT, ".venv/mcp-present"),
      "mcp-next": path.join(ROOT, ".venv/mcp-next"),
    },
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
      provider("old", {
        mcp: { url: "https://old.example.com/sse", transport: "sse" },
        policy: { mcp: { deniedTools: ["get-env"] } },
      }),
      provider("local", {
        mcp: { transport: "stdio", command: [process.execPath, EVERYTHING, "stdio"] },
        auth: { type: "environment", secretRef: "local" },
        policy: { mcp: { deniedTools: ["get-sum"] } },
      }),
      provider("lines", {
        mcp: { transport: "stdio", command: [process.execPath, LINE_SERVER, "/dev/null"] },
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
        spec: { models: [], providers: ["every-thing", "old", "local", "lines"] },
      },
    ],
  });
  machine.outside.streaming = reverseProxy(
    (host) => (host === "old.example.com" ? oldServer : server).port,
    arrived,
  );
}, 300_000);

afterAll(async () => {
  await machine?.stop();
  await server?.stop();
  await oldServer?.stop();
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
}, 300_000);

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
}, 300_000);

test("a server in the sidecar runs as the agent's user, without privileges", async () => {
  const done = await steps("SVC_MCP_LINES_URL", "http", "connect", "status");
  const status = String(done.get("status")?.value);
  const field = (name: string): string =>
    new RegExp(`^${name}:\\s+(\\S+)`, "m").exec(status)?.[1] ?? "";
  const { stdout } = await machine.sh("id -u", { agent: "coder" });
  expect(field("Uid")).toBe(stdout.trim());
  expect(field("Uid")).not.toBe("0");
  expect([field("NoNewPrivs"), Number.parseInt(field("CapBnd"), 16)]).toEqual(["1", 0]);
}, 300_000);

test("a server of the older transport: list, call, denied call, progress, questions of the server", async () => {
  const done = await steps(
    "SVC_MCP_OLD_URL",
    "sse",
    "connect",
    "list",
    "echo",
    "env",
    "progress",
    "sampling",
    "elicitation",
  );
  expect(done.get("list")?.value).toContain("echo");
  expect(done.get("list")?.value).not.toContain("get-env");
  expect(done.get("echo")?.value).toContain("hi");
  expect(done.get("env")?.message).toMatch(/get-env is not allowed by the policy/);
  // This client forgets what arrives together with the result.
  expect(done.get("progress")?.value).toMatchObject({ seen: expect.arrayContaining([1, 2]) });
  expect(done.get("sampling")?.value).toContain("sampled by the agent");
  expect(done.get("elicitation")?.value).toMatch(/decline/i);
}, 300_000);

/** Variable of a server's URL, and the tool that its policy denies. */
const SERVERS = { SVC_MCP_EVERY_THING_URL: "get-env", SVC_MCP_LOCAL_URL: "get-sum" };

test.each(["mcp-present", "mcp-next"])(
  "the Python client, %s",
  async (version) => {
    for (const [variable, denied] of Object.entries(SERVERS)) {
      const client = machine.client("mcp_python.py");
      const { code, stdout, stderr } = await machine.sh(
        `exec python3 ${client} http "$${variable}" agents-own`,
        { agent: "coder", env: { PYTHONPATH: path.join(machine.dir, version) } },
      );
      expect({ code, stderr }).toMatchObject({ code: 0 });
      const done = new Map(
        stdout
          .trim()
          .split("\n")
          .map((line) => JSON.parse(line) as { name: string; value?: unknown; error?: string })
          .map((step) => [step.name, step]),
      );
      expect(done.get("list")?.value).toContain("echo");
      expect(done.get("list")?.value).not.toContain(denied);
      expect(done.get("call")?.value).toContain("hello");
      if (denied === "get-env")
        expect(done.get("denied")?.error).toMatch(/get-env is not allowed by the policy/);
      expect(done.get("after")?.value).toContain("still here");
      expect(done.get("sampling")?.value).toContain("sampled words");
      expect(done.get("elicitation")?.value).toContain("Ada");
      expect(done.get("progress")?.value).toEqual([1, 2, 3, 4]);
      expect(done.get("cancel")?.value).toContain("after");
    }
  },
  90_000,
);
