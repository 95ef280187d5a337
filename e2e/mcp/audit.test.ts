/** What the audit chain says of calls of tools. */
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { mcpKeyYaml, mcpProviderYaml } from "../support/mcp/resources.ts";
import { ScriptedServer } from "../support/mcp/scripted.ts";
import { rawKey } from "../support/resources.ts";
import { Stack, svc } from "../support/stack.ts";
import { until } from "../support/wait.ts";

let stack: Stack;
let server: ScriptedServer;

beforeAll(async () => {
  server = await ScriptedServer.start();
  server.answer = () => ({ body: '{"jsonrpc":"2.0","id":1,"result":{"content":[]}}' });
  const denied = "policy: {mcp: {deniedTools: [rm]}}";
  stack = await Stack.start({
    files: {
      "silent.yaml": mcpProviderYaml("silent", { url: server.url, spec: [denied] }),
      "silent-key.yaml": mcpKeyYaml("to-silent", "silent"),
      "told.yaml": mcpProviderYaml("told", {
        url: server.url,
        spec: [denied, "audit: {toolArguments: true}"],
      }),
      "told-key.yaml": mcpKeyYaml("to-told", "told"),
      "lenient.yaml": mcpProviderYaml("lenient", {
        url: server.url,
        spec: [denied, "audit: {enforcement: audit}"],
      }),
      "lenient-key.yaml": mcpKeyYaml("to-lenient", "lenient"),
    },
  });
});

afterAll(async () => {
  await stack?.stop();
  await server?.stop();
});

interface Recorded {
  readonly type: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** Everything in the folder of the chains, as text. */
function files(): string {
  const dir = path.join(stack.stateDir, "audit");
  return readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(path.join(entry.parentPath, entry.name), "utf8"))
    .join("\n");
}

const records = (): readonly Recorded[] =>
  files()
    .split("\n")
    .filter((line) => line.includes('"TOOL_CALL"') || line.includes('"MCP_REFUSED"'))
    .map((line) => JSON.parse(line) as Recorded);

const SECRET = `ghp_${"a1B2".repeat(9)}`;

async function call(provider: string, tool: string): Promise<string> {
  const answer = await fetch(`${stack.externalUrl}/ext/mcp/${provider}`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${rawKey(`to-${provider}`)}`,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
    },
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      params: {
        name: tool,
        arguments: { path: "/tmp/file", token: SECRET, mail: "a@example.com" },
      },
    }),
  });
  return answer.text();
}

test("a call and a denied call have records, and arguments only if they are asked for", async () => {
  for (const provider of ["silent", "told", "lenient"]) {
    await call(provider, "ls");
    await call(provider, "rm");
  }
  await until(() => records().length >= 6, { what: "the records" });
  const calls = records().filter(({ type }) => type === "TOOL_CALL");
  const of = (provider: string, tool: string) =>
    calls.find(({ fields }) => fields["provider"] === provider && fields["tool"] === tool)?.fields;
  expect(of("silent", "ls")).toMatchObject({
    workload: "ext:to-silent",
    source: "external",
    access_key: "default/to-silent",
    provider: "silent",
    tool: "ls",
    client_ip: "127.0.0.1",
    allowed: true,
    status: 200,
    end: "complete",
    duration_ms: expect.any(Number),
    response_bytes: 48,
  });
  expect(of("silent", "ls")).not.toHaveProperty("arguments");
  expect(of("silent", "rm")).toMatchObject({
    allowed: false,
    code: "tool_not_allowed",
    end: "refused",
    enforcement: "enforce",
  });
  expect(of("lenient", "rm")).toMatchObject({
    allowed: false,
    enforcement: "audit",
    status: 200,
    end: "complete",
  });
  for (const tool of ["ls", "rm"])
    expect(of("told", tool)?.["arguments"]).toBe(
      '{"path":"/tmp/file","token":"[REDACTED:api-key]","mail":"[REDACTED:email]"}',
    );
  expect(files()).not.toContain(SECRET);
  expect(files()).not.toContain(rawKey("to-silent"));
});

test("svc audit shows them, and the chain verifies", async () => {
  const shown = await svc(["audit", "--type", "tool_call", "--state-dir", stack.stateDir]);
  expect(shown.stdout).toContain("TOOL_CALL");
  const verified = await svc(["audit", "verify", "--state-dir", stack.stateDir]);
  expect({ code: verified.code, stderr: verified.stderr }).toMatchObject({ code: 0 });
});
