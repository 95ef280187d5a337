/**
 * The tries of somebody who wants a denied tool, or a list that hides it not, through the real
 * Envoy. The upstream is scripted, because no well-behaved server answers like this.
 */
import http from "node:http";
import { buffer } from "node:stream/consumers";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { mcpKeyYaml, mcpProviderYaml } from "../support/mcp/resources.ts";
import { ScriptedServer, toolList } from "../support/mcp/scripted.ts";
import { call, DENIED_CALLS, LIST, LISTS } from "../support/mcp/tries.ts";
import { rawKey } from "../support/resources.ts";
import { Stack } from "../support/stack.ts";

let stack: Stack;
let server: ScriptedServer;

beforeAll(async () => {
  server = await ScriptedServer.start();
  stack = await Stack.start({
    files: {
      "server.yaml": mcpProviderYaml("server", {
        url: server.url,
        spec: ["policy: {mcp: {deniedTools: [rm]}}"],
      }),
      "other.yaml": mcpProviderYaml("other", { url: server.url }),
      "key.yaml": mcpKeyYaml("laptop", "server"),
      "second.yaml": mcpKeyYaml("second", "server", ["restrictions: {allowedMcpTools: [ls]}"]),
      "to-other.yaml": mcpKeyYaml("to-other", "other"),
    },
  });
});

afterAll(async () => {
  await stack?.stop();
  await server?.stop();
});

beforeEach(() => {
  server.received.length = 0;
  server.answer = () => ({ body: '{"jsonrpc":"2.0","id":1,"result":{}}' });
});

interface Sent {
  readonly key?: string;
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string | undefined>>;
  readonly body?: string | Buffer;
}

interface Got {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly text: string;
}

const JSON_HEADERS = {
  "content-type": "application/json",
  accept: "application/json, text/event-stream",
};

/** Sends exactly these bytes. */
async function send({ key = "laptop", method = "POST", path, headers, body }: Sent): Promise<Got> {
  const all: Record<string, string | undefined> = {
    ...(body === undefined ? { accept: "text/event-stream" } : JSON_HEADERS),
    authorization: `Bearer ${rawKey(key)}`,
    ...headers,
  };
  const set = Object.fromEntries(
    Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
  return new Promise((resolve, reject) => {
    const request = http.request(
      `${stack.externalUrl}${path ?? "/ext/mcp/server"}`,
      { method, headers: set, agent: false },
      (response) => {
        buffer(response).then(
          (bytes) =>
            resolve({
              status: response.statusCode ?? 0,
              headers: response.headers,
              text: bytes.toString("utf8"),
            }),
          reject,
        );
      },
    );
    request.on("error", reject);
    request.end(body);
  });
}

describe("a denied call never reaches the server", () => {
  test.each(DENIED_CALLS)("%s", async (_, body, headers) => {
    const got = await send({ body, headers });
    expect(got.text).toMatch(/"error"/);
    expect(JSON.parse(got.text)).toBeDefined();
    expect(server.received).toEqual([]);
  });

  test("an allowed one reaches it as it was sent", async () => {
    const body = `  ${call("ls", ',"arguments":{"n":12345678901234567890.0,"t":"\\u0041"}')} `;
    await send({ body, headers: { "x-svc-server": "svc_api", "mcp-session-id": undefined } });
    expect(server.received).toMatchObject([{ method: "POST", path: "/mcp?tenant=1", body }]);
    const { authorization, "x-svc-server": own } = server.received[0]?.headers ?? {};
    expect([authorization, own]).toEqual([undefined, undefined]);
  });

  test("a key's own list narrows", async () => {
    const body = call("cat");
    expect((await send({ body, key: "second" })).text).toContain("tool_not_allowed");
    expect((await send({ body: call("rm"), key: "second" })).text).toContain("tool_not_allowed");
    expect((await send({ body: call("ls"), key: "second" })).text).not.toContain("error");
    expect(server.received).toHaveLength(1);
  });
});

describe("a denied call over the old transport never reaches the server", () => {
  let stream: ReadableStreamDefaultReader<Uint8Array>;
  let events = "";
  let endpoint: string;

  /** Reads the stream until it holds a text. */
  async function readUntil(words: RegExp): Promise<string> {
    const decoder = new TextDecoder();
    while (!words.test(events)) {
      const { value, done } = await stream.read();
      if (done) throw new Error(`the stream ended: ${events}`);
      events += decoder.decode(value, { stream: true });
    }
    return words.exec(events)?.[1] ?? "";
  }

  beforeAll(async () => {
    const headers = { authorization: `Bearer ${rawKey("laptop")}`, accept: "text/event-stream" };
    server.answer = ({ method }) =>
      method === "GET" ? { status: 405 } : { body: '{"jsonrpc":"2.0","id":0,"result":{}}' };
    const answer = await fetch(`${stack.externalUrl}/ext/mcp/server/sse`, { headers });
    stream = (answer.body as ReadableStream<Uint8Array>).getReader();
    endpoint = await readUntil(/^data: (\/ext\/.+)$/m);
    const body = '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}';
    expect((await send({ path: endpoint, body })).status).toBe(202);
    await readUntil(/("id":0)/);
  });

  afterAll(async () => stream?.cancel());

  test.each(DENIED_CALLS)("%s", async (_, body, headers) => {
    events = "";
    const { status } = await send({ path: endpoint, body, headers });
    // What has no id gets no answer: a later request shows that it was processed.
    if (status === 202) {
      const ping = '{"jsonrpc":"2.0","id":"after","method":"ping"}';
      server.answer = () => ({ body: '{"jsonrpc":"2.0","id":"after","result":{}}' });
      expect((await send({ path: endpoint, body: ping })).status).toBe(202);
      await readUntil(/("after")/);
    }
    // Headers of the new transport mean nothing in the old one, and are not forwarded.
    const reached = server.received.filter(
      (request) => request.headers["mcp-name"] !== undefined || request.body !== call("ls"),
    );
    expect(reached.filter((request) => request.body.includes("tools"))).toEqual([]);
  });

  test("the error of a denied call is on the stream", async () => {
    events = "";
    expect((await send({ path: endpoint, body: call("rm") })).status).toBe(202);
    await readUntil(/("tool_not_allowed")/);
  });

  test("another key cannot send, and nobody without one", async () => {
    const path = endpoint;
    for (const sent of [{ key: "second" }, { key: "to-other" }])
      expect((await send({ path, body: LIST, ...sent })).status).toBeGreaterThanOrEqual(403);
    expect((await send({ path, body: LIST, headers: { authorization: undefined } })).status).toBe(
      401,
    );
    expect(server.received).toEqual([]);
  });

  test("lists are filtered on the stream", async () => {
    events = "";
    server.answer = () => ({ body: toolList("ls", "rm") });
    await send({ path: endpoint, body: LIST });
    await readUntil(/("ls")/);
    expect(events).not.toContain('"rm"');
  });
});

describe("the answer to a denied call", () => {
  test("is an error that clients show", async () => {
    const got = await send({ body: call("rm") });
    expect([got.status, got.headers["content-type"]]).toEqual([200, "application/json"]);
    expect(JSON.parse(got.text)).toMatchObject({
      jsonrpc: "2.0",
      id: 1,
      error: { code: 403, data: { code: "tool_not_allowed", status: 403 } },
    });
  });

  test("answers each request of a batch", async () => {
    const body = `[${call("ls").replace('"id":1', '"id":"a"')},${call("rm")}]`;
    const answers = JSON.parse((await send({ body })).text) as readonly { id: unknown }[];
    expect(answers.map(({ id }) => id)).toEqual(["a", 1]);
  });
});

describe("bodies", () => {
  test("1 MiB passes, one byte more does not", async () => {
    const room = 1_048_576 - call("ls", ',"arguments":{"t":""}').length;
    const full = call("ls", `,"arguments":{"t":"${"x".repeat(room)}"}`);
    expect(full.length).toBe(1_048_576);
    expect((await send({ body: full })).status).toBe(200);
    expect((await send({ body: `${full} ` })).status).toBe(413);
    const chunked = { "transfer-encoding": "chunked" };
    expect((await send({ body: `${full} `, headers: chunked })).status).toBe(413);
    expect(server.received).toHaveLength(1);
  });
});

describe("a list shows no denied tool", () => {
  const listed = toolList("ls", "rm");
  const event = (data: string) => `event: message\nid: 1\ndata: ${data}\n\n`;
  const stream = { "content-type": "text/event-stream" };

  test.each(LISTS)("%s", async (_, answer) => {
    server.answer = () => answer;
    const { text } = await send({ body: LIST });
    expect(server.received).toHaveLength(1);
    expect(text).not.toMatch(/"(?:rm|\\u0072m)"/);
  });

  test("in an answer of 3 MiB", async () => {
    const text = "x".repeat(1_024);
    const tools = Array.from({ length: 3_000 }, (_, n) => ({ name: `t${n}`, description: text }));
    const body = { jsonrpc: "2.0", id: 1, result: { tools: [{ name: "rm" }, ...tools] } };
    server.answer = () => ({ body: JSON.stringify(body) });
    const got = JSON.parse((await send({ body: LIST })).text) as typeof body;
    expect(got.result.tools).toEqual(tools);
    server.answer = () => ({ body: event(JSON.stringify(body)), headers: stream });
    const { text: events } = await send({ body: LIST });
    expect(events.length).toBeGreaterThan(3_000 * 1_024);
    expect(events).not.toContain('"rm"');
  });

  test("on a stream that is opened by itself, or resumed", async () => {
    server.answer = () => ({ body: event(listed), headers: stream });
    const { text } = await send({ method: "GET" });
    expect(text).toContain('"ls"');
    expect(text).not.toContain('"rm"');
  });

  test("a page that becomes empty keeps its cursor, and what remains its bytes", async () => {
    const body =
      '{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"rm"}],"nextCursor":"c", "n":1.0e2}}';
    server.answer = () => ({ body });
    expect((await send({ body: LIST })).text).toBe(body.replace('{"name":"rm"}', ""));
  });
});

describe("sessions", () => {
  const session = { "mcp-session-id": "upstream-session" };

  /** Opens a session. @returns its id */
  async function open(key: string, path?: string): Promise<string> {
    server.answer = () => ({ body: '{"jsonrpc":"2.0","id":1,"result":{}}', headers: session });
    const body = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}';
    const got = await send({ key, body, ...(path === undefined ? {} : { path }) });
    return String(got.headers["mcp-session-id"]);
  }

  test("belong to the key and the server that opened them", async () => {
    const id = await open("laptop");
    expect(id).not.toContain("upstream");
    server.received.length = 0;
    const tries: Sent[] = [
      { key: "second" },
      { key: "to-other", path: "/ext/mcp/other" },
      { headers: { "mcp-session-id": "upstream-session" } },
      { headers: { "mcp-session-id": `${id}A` } },
      { headers: { "mcp-session-id": `${id}, ${id}` } },
      { headers: { "mcp-session-id": "" } },
    ];
    for (const method of ["POST", "GET", "DELETE"])
      for (const one of tries) {
        const headers = { "mcp-session-id": id, ...one.headers };
        const sent = { ...one, method, headers, ...(method === "POST" ? { body: LIST } : {}) };
        expect((await send(sent)).status).toBe(404);
      }
    expect(server.received).toEqual([]);
    await send({ body: LIST, headers: { "mcp-session-id": id } });
    expect(server.received[0]?.headers["mcp-session-id"]).toBe("upstream-session");
  });

  test("events are replayed in their own session alone", async () => {
    const [mine, theirs] = [await open("laptop"), await open("second")];
    server.answer = () => ({
      body: "id: 41\ndata: {}\n\n",
      headers: { "content-type": "text/event-stream" },
    });
    const { text } = await send({
      method: "GET",
      headers: { "mcp-session-id": theirs },
      key: "second",
    });
    const eventId = /^id: (.+)$/m.exec(text)?.[1] ?? "";
    server.received.length = 0;
    const resume = (id: string, key: string, last: string) =>
      send({ method: "GET", key, headers: { "mcp-session-id": id, "last-event-id": last } });
    expect((await resume(mine, "laptop", eventId)).status).toBe(400);
    expect((await resume(mine, "laptop", "41")).status).toBe(400);
    expect((await resume(theirs, "second", `${eventId}1`)).status).toBe(400);
    expect((await send({ method: "GET", headers: { "last-event-id": eventId } })).status).toBe(400);
    expect(server.received).toEqual([]);
    await resume(theirs, "second", eventId);
    expect(server.received[0]?.headers["last-event-id"]).toBe("41");
  });

  test("an event of the answer that opens a session belongs to it", async () => {
    server.answer = () => ({
      body: "id: 7\ndata: {}\n\n",
      headers: { ...session, "content-type": "text/event-stream" },
    });
    const body = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}';
    const opened = await send({ body });
    const headers = {
      "mcp-session-id": String(opened.headers["mcp-session-id"]),
      "last-event-id": /^id: (.+)$/m.exec(opened.text)?.[1] ?? "",
    };
    server.received.length = 0;
    await send({ method: "GET", headers });
    expect(server.received[0]?.headers["last-event-id"]).toBe("7");
  });

  test("that the server has forgotten are reported with 404", async () => {
    const id = await open("laptop");
    for (const [status, message] of [
      [404, "Session not found"],
      [400, "Bad Request: No valid session ID provided"],
    ] as const) {
      const error = { code: -32_000, message };
      server.answer = () => ({ status, body: JSON.stringify({ jsonrpc: "2.0", error, id: null }) });
      expect((await send({ body: LIST, headers: { "mcp-session-id": id } })).status).toBe(404);
    }
  });
});

describe("who may call", () => {
  test.each<[string, Sent, number, string]>([
    ["no key", { headers: { authorization: undefined } }, 401, "missing_key"],
    ["a wrong key", { headers: { authorization: "Bearer svc_x" } }, 401, "invalid_key"],
    ["a key of another server", { key: "to-other" }, 403, "server_not_allowed"],
    ["an unknown server", { path: "/ext/mcp/none" }, 404, "server_not_found"],
    ["an escaped name", { path: "/ext/mcp/%73erver" }, 200, ""],
    ["a path below", { path: "/ext/mcp/server/x" }, 404, ""],
    ["a path around", { path: "/ext/mcp/other/../server" }, 200, ""],
    ["a web page", { headers: { origin: "https://evil.example" } }, 403, "origin_not_allowed"],
    ["a page without origin", { headers: { origin: "null" } }, 403, "origin_not_allowed"],
    [
      "a page by DNS rebinding",
      { headers: { origin: "http://evil.example", host: "evil.example" } },
      403,
      "origin_not_allowed",
    ],
    ["PUT", { method: "PUT" }, 405, "method_not_allowed"],
  ])("%s", async (_, sent, status, code) => {
    const got = await send({ body: LIST, ...sent });
    expect(got.status).toBe(status);
    expect(got.text).toContain(code);
    expect(server.received.length).toBe(status === 200 ? 1 : 0);
    expect(got.headers["www-authenticate"]).toBe(status === 401 ? "Bearer" : undefined);
  });

  test("every method needs a key", async () => {
    for (const method of ["GET", "DELETE", "OPTIONS"])
      expect((await send({ method, headers: { authorization: undefined } })).status).toBe(401);
    expect(server.received).toEqual([]);
  });

  test("discovery of an authorization server finds none", async () => {
    for (const path of [
      "/.well-known/oauth-protected-resource/ext/mcp/server",
      "/.well-known/oauth-authorization-server",
      "/register",
    ])
      expect((await send({ method: "GET", path })).status).toBe(404);
  });
});
