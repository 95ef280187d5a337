/**
 * The tries of an agent that wants a denied tool, or to see it in a list, through the real Envoy of
 * its sidecar.
 */
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import https from "node:https";
import os from "node:os";
import path from "node:path";
import { buffer } from "node:stream/consumers";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { ROOT } from "../support/build.ts";
import {
  call,
  DENIED_CALLS,
  LIST,
  LIST_EVENT,
  type ListAnswer,
  LISTS,
} from "../support/mcp/tries.ts";
import { Outside } from "../support/services.ts";
import { Sidecar } from "../support/sidecar.ts";
import { until } from "../support/wait.ts";

const HOST = "mcp.example.com";
const LOCAL = "lines.mcp.internal";
const TOKEN = "token-of-the-server-0123456789";
const LINES = path.join(os.tmpdir(), `svc-lines-${process.pid}.jsonl`);

const binding = (name: string, rest: object): object => ({
  name,
  type: "mcp",
  auth: { type: "none", env: {} },
  config: {},
  policy: { deny: [], httpRules: [], mcp: { deniedTools: ["rm"] } },
  scope: {},
  audit: { enforcement: "enforce", logRequests: false },
  ...rest,
});
const server = (transport: string, host: string, target: string): object => ({
  hosts: [host],
  mcp: { transport, host, path: target },
});

const REMOTE = binding("remote", {
  ...server("http", HOST, "/mcp?tenant=1"),
  auth: { type: "api-key", env: { token: "SVC_SECRET_REMOTE" } },
});

const OTHERS: readonly object[] = [
  binding("old", server("sse", "old.example.com", "/sse")),
  binding("watched", {
    ...server("http", "open.example.com", "/mcp"),
    audit: { enforcement: "audit", logRequests: false },
  }),
  binding("ruled", {
    ...server("http", "ruled.example.com", "/mcp"),
    policy: {
      deny: [],
      mcp: { deniedTools: ["rm"] },
      httpRules: [{ methods: ["*"], paths: ["/**"], action: "allow" }],
    },
  }),
  binding("lines", {
    hosts: [LOCAL],
    mcp: {
      transport: "stdio",
      host: LOCAL,
      path: "/mcp",
      command: [process.execPath, path.join(ROOT, "e2e/support/mcp/line-server.mjs"), LINES],
    },
  }),
];

let outside: Outside;
let sidecar: Sidecar;

beforeAll(async () => {
  writeFileSync(LINES, "");
  outside = await Outside.start([HOST, "old.example.com", "open.example.com", "ruled.example.com"]);
  sidecar = await Sidecar.start({
    outside,
    secrets: { SVC_SECRET_REMOTE: TOKEN },
    bindings: [REMOTE, ...OTHERS],
  });
});

afterAll(async () => {
  await sidecar?.stop();
  await outside?.close();
  rmSync(LINES, { force: true });
});

const answering =
  ({ status = 200, headers, body }: ListAnswer): Outside["handler"] =>
  (_request, response) => {
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(body);
  };

beforeEach(() => {
  outside.requests.length = 0;
  outside.streaming = undefined;
  outside.handler = answering({ body: '{"jsonrpc":"2.0","id":1,"result":{}}' });
});

interface Sent {
  readonly host?: string;
  readonly method?: string;
  readonly target?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

interface Got {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

/** Sends exactly these bytes. */
async function send({ host = HOST, method, target, headers, body }: Sent): Promise<Got> {
  const request = https.request({
    host: "127.0.0.1",
    port: sidecar.httpsPort,
    servername: host,
    ca: sidecar.bundle,
    agent: false,
    method: method ?? (body === undefined ? "GET" : "POST"),
    path: target ?? (host === HOST ? "/mcp?tenant=1" : "/mcp"),
    headers: {
      host,
      authorization: "Bearer agents-own",
      accept: "application/json, text/event-stream",
      ...(body === undefined
        ? {}
        : { "content-type": "application/json", "content-length": Buffer.byteLength(body) }),
      ...headers,
    },
  });
  return new Promise((resolve, reject) => {
    request.once("error", reject);
    request.once("response", (response) => {
      buffer(response).then(
        (bytes) =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            text: bytes.toString("utf8"),
          }),
        reject,
      );
    });
    request.end(body);
  });
}

describe("a denied call never reaches the server", () => {
  test.each(DENIED_CALLS)("%s", async (_, body, headers) => {
    const got = await send({ body, headers });
    expect(got.text).toMatch(/"error"/);
    expect(JSON.parse(got.text)).toBeDefined();
    expect(got.headers["x-svc-denied"]).toBeDefined();
    expect(outside.requests).toEqual([]);
  });

  test.each<[string, Sent]>([
    ["another query", { target: "/mcp" }],
    ["a longer query", { target: "/mcp?tenant=1&x=2" }],
    ["a slash at the end", { target: "/mcp/?tenant=1" }],
    ["capitals", { target: "/MCP?tenant=1" }],
    ["another path", { target: "/other" }],
    ["dots", { target: "/x/../mcp?tenant=1" }],
    ["an escape", { target: "/%6dcp?tenant=1" }],
    ["another method", { method: "PUT" }],
    ["PATCH", { method: "PATCH" }],
    ["an upgrade", { headers: { connection: "upgrade", upgrade: "websocket" } }],
    ["an override of the method", { headers: { "x-http-method-override": "PUT" } }],
  ])("by %s", async (_, sent) => {
    const got = await send({ body: call("rm"), ...sent });
    expect(got.status >= 400 || "x-svc-denied" in got.headers).toBe(true);
    expect(outside.requests).toEqual([]);
  });

  test.each(["/mcp/", "/MCP", "/mcp?x=1", "/Mcp//"])(
    "by %s where a rule allows every path",
    async (target) => {
      const got = await send({ host: "ruled.example.com", target, body: call("rm") });
      expect(got.text).toMatch(/error|denied/);
      expect(outside.requests).toEqual([]);
    },
  );

  test("a rule allows other paths, unread", async () => {
    const host = "ruled.example.com";
    expect((await send({ host, target: "/health" })).status).toBe(200);
    expect((await send({ host, body: call("rm") })).text).toContain("not allowed by the policy");
    expect((await send({ host, body: call("ls") })).status).toBe(200);
    expect(outside.requests.map(({ url }) => url)).toEqual(["/health", "/mcp"]);
  });

  test("an allowed one reaches it as it was sent, with the credential", async () => {
    const body = `  ${call("ls", ',"arguments":{"n":12345678901234567890.0,"t":"\\u0041"}')} `;
    const headers = { "x-svc-call": "forged" };
    expect((await send({ body, headers })).status).toBe(200);
    const [request] = outside.requests;
    expect([request?.url, request?.body.toString()]).toEqual(["/mcp?tenant=1", body]);
    expect(request?.headers["authorization"]).toBe(`Bearer ${TOKEN}`);
    expect(request?.headers["x-svc-call"]).toBeUndefined();
  });

  test("a message of 1 MiB passes, one byte more does not", async () => {
    const room = 1_048_576 - call("ls", ',"arguments":{"t":""}').length;
    const full = call("ls", `,"arguments":{"t":"${"x".repeat(room)}"}`);
    expect((await send({ body: full })).status).toBe(200);
    expect((await send({ body: `${full} ` })).status).toBe(413);
  });
});

describe("the answer to a denied call", () => {
  test("is an error that clients show, and a record", async () => {
    const got = await send({ body: call("rm") });
    expect([got.status, got.headers["content-type"]]).toEqual([200, "application/json"]);
    expect(JSON.parse(got.text)).toMatchObject({
      jsonrpc: "2.0",
      id: 1,
      error: { code: 403, data: { code: "tool_not_allowed", status: 403, binding: "remote" } },
    });
    await send({ body: call("ls") });
    const called = { tool: "ls", provider: "remote" };
    await until(() => records("TOOL_CALL", { ...called, phase: "response" }).length > 0, {
      what: "the record of the call",
    });
    expect(records("TOOL_CALL", { ...called, phase: "request" })[0]).toMatchObject({
      allowed: true,
      action: "tools:call",
      workload: "default/tester",
    });
    const [ended] = records("TOOL_CALL", { ...called, phase: "response" });
    expect(ended).toMatchObject({ status: 200 });
    expect(ended?.["duration_ms"]).toBeGreaterThanOrEqual(0);
    expect(records("TOOL_CALL", { tool: "rm" })[0]).toMatchObject({ allowed: false });
  });

  test("answers each request of a batch", async () => {
    const body = `[${call("ls").replace('"id":1', '"id":"a"')},${call("rm")}]`;
    const answers = JSON.parse((await send({ body })).text) as readonly { id: unknown }[];
    expect(answers.map(({ id }) => id)).toEqual(["a", 1]);
  });

  test("in audit mode the call is forwarded, and recorded", async () => {
    outside.handler = answering(LIST_EVENT);
    const host = "open.example.com";
    expect((await send({ host, body: call("rm") })).status).toBe(200);
    expect((await send({ host, body: LIST })).text).toContain('"rm"');
    expect(outside.requests).toHaveLength(2);
    expect(records("TOOL_CALL", { binding: "watched" })[0]).toMatchObject({
      allowed: true,
      mode: "audit",
      rule: "policy.mcp.deniedTools",
    });
  });
});

test("another policy is in force at once", async () => {
  const allows = async (name: string): Promise<boolean> =>
    !(await send({ body: call(name) })).text.includes("tool_not_allowed");
  expect([await allows("rm"), await allows("ls")]).toEqual([false, true]);
  const policy = { deny: [], httpRules: [], mcp: { deniedTools: ["ls"] } };
  sidecar.writeSpecs([{ ...REMOTE, policy }, ...OTHERS]);
  await until(async () => await allows("rm"), { what: "the new policy" });
  expect(await allows("ls")).toBe(false);
  sidecar.writeSpecs([REMOTE, ...OTHERS]);
  await until(async () => await allows("ls"), { what: "the former policy" });
  expect(await allows("rm")).toBe(false);
});

function records(
  type: string,
  fields: Readonly<Record<string, unknown>>,
): readonly Readonly<Record<string, unknown>>[] {
  return sidecar
    .audit()
    .filter((record) => record.type === type)
    .map((record) => record.fields)
    .filter((each) => Object.entries(fields).every(([name, value]) => each[name] === value));
}

describe("a list shows no denied tool", () => {
  test.each(LISTS)("%s", async (_, answer) => {
    outside.handler = answering(answer);
    const { text } = await send({ body: LIST, headers: { "accept-encoding": "gzip" } });
    expect(outside.requests).toHaveLength(1);
    expect(outside.requests[0]?.headers["accept-encoding"]).toBeUndefined();
    expect(text).not.toMatch(/"(?:rm|\\u0072m)"/);
  });

  test("on a stream that is opened by itself, or resumed", async () => {
    outside.handler = answering(LIST_EVENT);
    const { text } = await send({ headers: { "last-event-id": "7" } });
    expect(text).toContain('"ls"');
    expect(text).not.toContain('"rm"');
  });

  test("of several MiB", async () => {
    const description = "x".repeat(1_000);
    const tools = Array.from({ length: 3_000 }, (_, n) => ({ name: `t${n}`, description }));
    const result = { tools: [...tools, { name: "rm" }] };
    outside.handler = answering({ body: JSON.stringify({ jsonrpc: "2.0", id: 1, result }) });
    const { status, text } = await send({ body: LIST });
    expect(status).toBe(200);
    expect((JSON.parse(text) as { result: { tools: unknown[] } }).result.tools).toHaveLength(3_000);
  });

  test("a page that becomes empty keeps its cursor, and what remains its bytes", async () => {
    const body =
      '{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"rm"}],"nextCursor":"c", "n":1.0e2}}';
    outside.handler = answering({ body });
    expect((await send({ body: LIST })).text).toBe(body.replace('{"name":"rm"}', ""));
  });
});

describe("the older transport", () => {
  const host = "old.example.com";

  test("messages go to the path of an open stream, and are judged there", async () => {
    let end: (() => void) | undefined;
    outside.streaming = (request, response) => {
      if (request.method === "GET") {
        response.writeHead(200, { "content-type": "text/event-stream" });
        response.write("event: endpoint\ndata: /message?sessionId=1\n\n");
        response.write(LIST_EVENT.body);
        end = () => response.end();
        return;
      }
      request.resume();
      messages.push(request.url);
      // Not as the transport says.
      response.writeHead(202, { "content-type": "application/json" }).end('{"tools":["rm"]}');
    };
    const messages: string[] = [];
    const post = (body: string, target = "/message?sessionId=1") => send({ host, target, body });
    expect((await post(call("ls"))).status).toBe(403);
    const stream = send({ host, target: "/sse" });
    await until(async () => (await post(call("ls"))).status === 202, { what: "the stream" });
    expect((await post(LIST)).text).toBe("");
    const arrived = messages.length;
    const denied = await post(call("rm"));
    expect([denied.status, denied.text]).toEqual([
      403,
      expect.stringContaining("not allowed by the policy"),
    ]);
    for (const target of ["/message?sessionId=2", "/message", "/message?sessionId=1&x=1", "/x"])
      expect((await post(call("ls"), target)).text).toContain("error");
    expect(messages).toHaveLength(arrived);
    end?.();
    const { text } = await stream;
    expect(text).toContain("/message?sessionId=1");
    expect(text).toContain('"ls"');
    expect(text).not.toContain('"rm"');
    await until(async () => (await post(call("ls"))).status !== 202, { what: "the stream's end" });
  });
});

describe("a server in the sidecar", () => {
  const host = LOCAL;
  const INITIALIZE =
    '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}';
  const open = async (): Promise<Readonly<Record<string, string>>> => {
    const got = await send({ host, body: INITIALIZE });
    expect(got.status).toBe(200);
    return { "mcp-session-id": String(got.headers["mcp-session-id"]) };
  };
  const lines = (): readonly string[] => readFileSync(LINES, "utf8").split("\n");

  test.each<[string, string]>([
    ["a line feed", "\n"],
    ["a carriage return", "\r"],
    ["both", "\r\n"],
  ])("a message with %s in it is one message", async (_, separator) => {
    const headers = await open();
    const hidden = call("rm");
    const body = call("ls", `,"arguments":{"a":${separator}${hidden}${separator}}`);
    const got = await send({ host, headers, body });
    expect(JSON.parse(got.text)).toMatchObject({ result: { called: "ls" } });
    expect(lines()).not.toContain(hidden);
  });

  test.each(["\u0085", "\u2028", "\u2029"])("so is one with %j in a text", async (separator) => {
    const headers = await open();
    const body = call("ls", `,"arguments":{"a":"x${separator}y"}`);
    const got = await send({ host, headers, body });
    expect(JSON.parse(got.text)).toMatchObject({ result: { called: "ls" } });
  });

  test.each(DENIED_CALLS)("a denied call does not reach it: %s", async (_, body, more) => {
    const headers = { ...(await open()), ...more };
    const before = lines().length;
    expect((await send({ host, headers, body })).text).toMatch(/"error"/);
    expect(lines()).toHaveLength(before);
    expect((await send({ host, headers: await open(), method: "DELETE" })).status).toBe(204);
    await send({ host, headers, method: "DELETE" });
  });

  test("its list is filtered", async () => {
    const { text } = await send({ host, headers: await open(), body: LIST });
    expect(text).toContain('"ls"');
    expect(text).not.toContain('"rm"');
  });

  test("when it dies its session is gone, and a new one begins", async () => {
    const headers = await open();
    const first = await send({ host, headers, body: call("pid") });
    expect((await send({ host, headers, body: call("exit") })).text).toContain("has ended");
    expect((await send({ host, headers, body: call("ls") })).status).toBe(404);
    expect((await send({ host, headers })).status).toBe(404);
    const second = await send({ host, headers: await open(), body: call("pid") });
    expect(second.status).toBe(200);
    expect(second.text).not.toBe(first.text);
  });

  test("unknown sessions, other paths, and more sessions than allowed are refused", async () => {
    const headers = { "mcp-session-id": "unknown" };
    expect((await send({ host, headers, body: LIST })).status).toBe(404);
    expect((await send({ host, body: LIST })).status).toBe(400);
    expect((await send({ host, target: "/other" })).status).toBe(403);
    const sessions: Record<string, string>[] = [];
    for (let more = true; more;) {
      const got = await send({ host, body: INITIALIZE });
      more = got.status === 200;
      if (more) sessions.push({ "mcp-session-id": String(got.headers["mcp-session-id"]) });
      else expect(got.status).toBe(503);
    }
    expect(sessions.length).toBeLessThanOrEqual(16);
    for (const one of sessions) await send({ host, headers: one, method: "DELETE" });
    const again = await open();
    expect((await send({ host, headers: again, body: LIST })).status).toBe(200);
  });
});
