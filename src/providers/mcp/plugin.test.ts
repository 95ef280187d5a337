import { describe, expect, test } from "vitest";
import type { BoundMcpServer } from "../../resources/binding-spec.ts";
import { ConfigError, type Denial } from "../contract.ts";
import { context, FakeServer, request } from "../testing.ts";
import { McpInstance } from "./plugin.ts";

const SERVER: BoundMcpServer = { transport: "http", host: "mcp.example.com", path: "/mcp?t=1" };
const URL = "https://mcp.example.com/mcp?t=1";

const instance = (mcp = SERVER): McpInstance => new McpInstance(context({ authType: "none", mcp }));

const post = (body: unknown, headers: Readonly<Record<string, string>> = {}, url = URL) =>
  request(`POST ${url}`, {
    headers: { "content-type": "application/json", ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
const call = (method: string, params?: object) => ({ jsonrpc: "2.0", id: 1, method, params });

describe("actions", () => {
  test.each<[object, object[]]>([
    [call("initialize"), [{ action: "session:initialize" }]],
    [call("server/discover"), [{ action: "server:discover" }]],
    [call("resources/templates/list"), [{ action: "resources/templates:list" }]],
    [
      call("tools/call", { name: "x" }),
      [{ action: "tools:call", item: { kind: "tools", name: "x" } }],
    ],
    [
      call("resources/read", { uri: "a:b" }),
      [{ action: "resources:read", item: { kind: "resources", name: "a:b" } }],
    ],
    [
      call("completion/complete", { ref: { type: "ref/prompt", name: "p" } }),
      [{ action: "completion:complete", item: { kind: "prompts", name: "p" } }],
    ],
    [{ jsonrpc: "2.0", id: 1, result: {} }, [{ action: "session:answer" }]],
    [
      [call("ping"), call("tools/call", { name: "x" })],
      [{ action: "session:ping" }, { action: "tools:call", item: { kind: "tools", name: "x" } }],
    ],
  ])("%j", (body, actions) => {
    expect(instance().resolveAction(post(body))).toMatchObject({ kind: "resolved", actions });
  });

  test.each([
    "POST https://mcp.example.com/mcp",
    "POST https://mcp.example.com/MCP?t=1",
    "POST https://mcp.example.com/mcp/?t=1",
    `PUT ${URL}`,
    `get ${URL}`,
    "GET https://other.example.com/mcp?t=1",
  ])("%s is not understood", (line) => {
    expect(instance().resolveAction(request(line)).kind).toBe("unresolved");
  });

  test("other paths need a rule", () => {
    const resolution = instance().resolveAction(request("GET https://mcp.example.com/x"));
    expect(resolution).toMatchObject({ onlyByRule: true, actions: [{ action: "http:get" }] });
  });

  test("a method with other characters is not understood", () => {
    expect(instance().resolveAction(post(call("a b"))).kind).toBe("unresolved");
  });
});

describe("messages that can be misread", () => {
  test.each<[string, Readonly<Record<string, string>>, number]>([
    ["{", {}, 400],
    ["", {}, 400],
    ["{}", { "content-type": "text/plain" }, 415],
    ["{}", { "content-encoding": "gzip" }, 415],
    [JSON.stringify(call("tools/call", { name: "x" })), { "mcp-name": "y" }, 400],
  ])("%j with %j", (body, headers, status) => {
    const sent = post(body, headers);
    expect(instance().misread(sent)).toBeDefined();
    const denial: Denial = { status: 400, code: "malformed_request", message: "m", details: {} };
    expect(instance().wordDenial(sent, denial)?.status).toBe(status);
  });

  test("an upgrade", () => {
    const sent = request(`GET ${URL}`, { headers: { upgrade: "websocket" } });
    expect(instance().misread(sent)).toBeDefined();
    expect(instance().misread(request(`GET ${URL}`))).toBeUndefined();
  });
});

describe("denials", () => {
  const denial = (code: string, status = 403): Denial => ({
    code,
    status,
    message: "no",
    details: { binding: "b" },
  });

  test.each([
    ["tool_not_allowed", 403, 200],
    ["action_denied", 403, 200],
    ["credential_unavailable", 503, 503],
    ["audit_unavailable", 503, 503],
  ])("%s", (code, status, answered) => {
    const worded = instance().wordDenial(
      post(call("tools/call", { name: "x" })),
      denial(code, status),
    );
    expect(worded?.status).toBe(answered);
    expect(JSON.parse(worded?.body ?? "")).toEqual({
      jsonrpc: "2.0",
      id: 1,
      error: { code: status, message: "no", data: { code, status, binding: "b" } },
    });
  });

  test("a notification has no answer, so the status says it", () => {
    const sent = post({ jsonrpc: "2.0", method: "notifications/cancelled", params: {} });
    expect(instance().wordDenial(sent, denial("action_denied"))?.status).toBe(403);
  });
});

test("on a message path of the older transport the status says it", () => {
  const old = instance({ transport: "sse", host: "mcp.example.com", path: "/sse" });
  old.endpoints.open("/message?s=1");
  const sent = post(call("tools/call", { name: "x" }), {}, "https://mcp.example.com/message?s=1");
  const denial = { status: 403, code: "tool_not_allowed", message: "no", details: {} };
  expect(old.wordDenial(sent, denial)?.status).toBe(403);
});

describe("credentials", () => {
  test("in a header of its own", async () => {
    const world = context({
      authType: "api-key",
      secrets: { token: "t0ken" },
      config: { header: "X-Tickets-Key" },
      mcp: SERVER,
    });
    const one = new McpInstance(world);
    expect(one.credentialHeaders).toEqual(["x-tickets-key"]);
    expect(await one.injectCredentials(request(`GET ${URL}`))).toMatchObject({
      set: [["x-tickets-key", "t0ken"]],
    });
  });

  test("by OAuth, with what the configuration says", async () => {
    const server = new FakeServer(() =>
      Response.json({ access_token: "abc", token_type: "bearer", expires_in: 3_600 }),
    );
    const one = new McpInstance(
      context({
        authType: "oauth2",
        secrets: { clientId: "id:1", clientSecret: "s/2" },
        config: { tokenUrl: "https://login.example.com/t", scope: "a b", resource: URL },
        fetch: server.fetch,
        mcp: SERVER,
      }),
    );
    await one.start();
    expect(await one.injectCredentials(request(`GET ${URL}`))).toMatchObject({
      set: [["authorization", "Bearer abc"]],
    });
    const [asked] = server.calls;
    expect(new URLSearchParams(asked?.body).get("resource")).toBe(URL);
    const basic = asked?.headers.get("authorization")?.slice("Basic ".length) ?? "";
    expect(Buffer.from(basic, "base64").toString()).toBe("id%3A1:s%2F2");
    await one.stop();
  });

  test.each([
    [{ access_token: "a b" }],
    [{ access_token: "a", token_type: "mac" }],
    [{ access_token: "a", expires_in: 0 }],
    [null],
  ])("an answer of the token server without a usable token: %j", async (answer) => {
    const one = new McpInstance(
      context({
        authType: "oauth2",
        secrets: { clientId: "id", clientSecret: "secret" },
        config: { tokenUrl: "https://login.example.com/t" },
        fetch: new FakeServer(() => Response.json(answer)).fetch,
        mcp: SERVER,
      }),
    );
    await expect(one.refreshToken()).rejects.toThrow(/token/);
    await one.stop();
  });

  test.each(["PATH", "a.b", "1a"])("the key %s is no variable", (key) => {
    const mcp: BoundMcpServer = { ...SERVER, transport: "stdio", command: ["x"] };
    const world = context({ authType: "environment", secrets: { [key]: "v" }, mcp });
    expect(() => new McpInstance(world)).toThrow(ConfigError);
  });
});
