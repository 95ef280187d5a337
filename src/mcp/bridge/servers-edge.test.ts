/** The bridge's side of servers, request by request: refusals, failures, bounds. */
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { until } from "../../../e2e/support/wait.ts";
import type { BridgeOptions } from "./bridge.ts";
import { newSessionId } from "./session-table.ts";
import {
  type ScriptedRequest,
  Cleanups,
  json,
  manyRounds,
  type RawAnswer,
  rawAnswer,
  RawEvents,
  type SocketRequest,
  rawRequest,
  Replica,
  ScriptedServer,
} from "./testing.ts";

const MIB = 1024 * 1024;
const TARGET = "/base/sse?key=url-secret";

let cleanups: Cleanups;
let folder: string;
let upstream: ScriptedServer;

beforeEach(async () => {
  cleanups = new Cleanups();
  folder = cleanups.folder();
  upstream = new ScriptedServer();
  await cleanups.listen(upstream.server, path.join(folder, "egress.sock"));
});

afterEach(() => cleanups.run());

const start = (options: Partial<BridgeOptions> = {}): Promise<Replica> =>
  Replica.start(cleanups, folder, options);

const HEADERS = {
  host: "mcp.test",
  authorization: "Bearer upstream-secret",
  "content-type": "application/json",
  "x-svc-mcp-owner": "key/server",
  "x-svc-mcp-egress": "cluster",
};

/** A client of Streamable HTTP, as Envoy forwards it. */
class NewClient {
  session: string | undefined;
  readonly #replica: Replica;

  constructor(replica: Replica, session?: string) {
    this.#replica = replica;
    this.session = session;
  }

  post(value: unknown, headers: object = {}): Promise<RawAnswer> {
    return this.ask("POST", headers, value);
  }

  ask(method: string, headers: object = {}, value?: unknown, target = TARGET): Promise<RawAnswer> {
    return rawAnswer(this.#replica.serversSocket, target, this.#request(method, headers, value));
  }

  async stream(method: "GET" | "POST", value?: unknown): Promise<RawEvents> {
    const request = this.#request(method, {}, value);
    const answer = await rawRequest(this.#replica.serversSocket, TARGET, request);
    expect(answer.statusCode).toBe(200);
    cleanups.add(() => answer.destroy());
    return new RawEvents(answer);
  }

  #request(method: string, headers: object, value: unknown): SocketRequest {
    return {
      method,
      headers: {
        ...HEADERS,
        ...(this.session !== undefined && { "mcp-session-id": this.session }),
        ...headers,
      },
      ...(value !== undefined && { body: typeof value === "string" ? value : json(value) }),
    };
  }
}

/** The upstream's stream. */
class OldStream {
  readonly arrival: ScriptedRequest;

  constructor(arrival: ScriptedRequest) {
    this.arrival = arrival;
    arrival.response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
  }

  endpoint(data = "/base/messages?id=1"): void {
    this.arrival.response.write(`event: endpoint\ndata: ${data}\n\n`);
  }

  send(value: unknown): void {
    this.arrival.response.write(`event: message\ndata: ${json(value)}\n\n`);
  }
}

/** Takes the next frame. */
async function accepted(status = 202): Promise<ScriptedRequest> {
  const arrival = await upstream.next(({ method }) => method === "POST");
  arrival.response.writeHead(status).end();
  return arrival;
}

async function initialized(
  replica: Replica,
): Promise<{ readonly client: NewClient; readonly stream: OldStream }> {
  const client = new NewClient(replica);
  const answer = client.post({ id: 0, method: "initialize" });
  const stream = new OldStream(await upstream.next());
  stream.endpoint();
  await accepted();
  stream.send({ id: 0, result: {} });
  const { status, headers } = await answer;
  expect(status).toBe(200);
  client.session = String(headers["mcp-session-id"]);
  return { client, stream };
}

test("initialize: a stream, a frame, JSON, and a session", async () => {
  const replica = await start();
  const client = new NewClient(replica);
  const answer = client.post({ id: 0, method: "initialize" }, { "mcp-protocol-version": "x" });
  const opened = await upstream.next();
  expect(opened.method).toBe("GET");
  expect(opened.request.url).toBe(TARGET);
  expect(opened.request.headers).toEqual({
    accept: "text/event-stream",
    "accept-encoding": "identity",
    authorization: "Bearer upstream-secret",
    connection: "keep-alive",
    host: "mcp.test",
    "mcp-protocol-version": "x",
    "x-svc-relay": "cluster",
  });
  const stream = new OldStream(opened);
  stream.endpoint();
  const { request, body } = await accepted();
  expect(request.url).toBe("/base/messages?id=1");
  expect(request.headers["content-type"]).toBe("application/json");
  expect(body).toBe(json({ id: 0, method: "initialize" }));
  stream.send({ id: 0, result: {} });
  const { status, headers, body: got } = await answer;
  expect(status).toBe(200);
  expect(headers["content-type"]).toBe("application/json");
  expect(headers["mcp-session-id"]).toMatch(/^[\w-]{43}$/);
  expect(got).toBe(json({ id: 0, result: {} }));
  expect(JSON.stringify(replica.log.lines)).not.toContain("secret");
});

test("a later frame has the credential of its own request", async () => {
  const { client, stream } = await initialized(await start());
  const answer = client.post({ id: 1, method: "ping" }, { authorization: "Bearer rotated" });
  const { request } = await accepted();
  expect(request.headers.authorization).toBe("Bearer rotated");
  expect(Object.keys(request.headers)).not.toContain("mcp-session-id");
  stream.send({ id: 1, result: {} });
  expect((await answer).body).toBe(json({ id: 1, result: {} }));
});

describe("requests that are refused", () => {
  test.each([
    ["an unknown session", { "mcp-session-id": newSessionId() }, 404],
    ["a malformed session", { "mcp-session-id": "../x" }, 404],
    ["an empty session", { "mcp-session-id": "" }, 404],
    ["another owner", { "x-svc-mcp-owner": "other" }, 404],
    ["another upstream", { "x-svc-mcp-egress": "other" }, 404],
    ["another host", { host: "other.test" }, 404],
    ["no owner", { "x-svc-mcp-owner": "" }, 421],
    ["no upstream", { "x-svc-mcp-egress": "" }, 421],
  ])("%s", async (_name, headers, status) => {
    const { client } = await initialized(await start());
    for (const method of ["POST", "GET", "DELETE"]) {
      const value = method === "POST" ? { id: 1, method: "ping" } : undefined;
      expect((await client.ask(method, headers, value)).status).toBe(status);
    }
    expect(upstream.waiting).toEqual([]);
  });

  test("another path of the upstream", async () => {
    const { client } = await initialized(await start());
    const answer = await client.ask("POST", {}, { id: 1, method: "ping" }, "/other/sse");
    expect(answer.status).toBe(404);
  });

  test.each([
    ["a request", { id: 7, method: "tools/list" }, 7],
    ["server/discover", { id: "probe", method: "server/discover" }, "probe"],
    ["a notification", { method: "notifications/initialized" }, null],
  ])("%s without a session", async (_name, value, id) => {
    const { status, body } = await new NewClient(await start()).post(value);
    expect(status).toBe(400);
    // Neither -32020 to -32022, nor 404 with -32601: a later client falls back to initialize.
    expect(JSON.parse(body)).toMatchObject({ id, error: { code: -32_000 } });
    expect(upstream.waiting).toEqual([]);
  });

  test("GET and DELETE without a session, another method, 1 MiB + 1, no JSON", async () => {
    const client = new NewClient(await start());
    expect((await client.ask("GET")).status).toBe(400);
    expect((await client.ask("DELETE")).status).toBe(400);
    expect((await client.ask("PUT", {}, "{}")).status).toBe(405);
    expect((await client.post(`${" ".repeat(MIB - 1)}{}`)).status).toBe(413);
    expect((await client.post("{")).status).toBe(400);
  });

  test("the id of an open request, and an id twice in a batch", async () => {
    const { client, stream } = await initialized(await start());
    const first = client.post({ id: 1, method: "a" });
    await accepted();
    expect((await client.post({ id: 1, method: "b" })).status).toBe(400);
    const batch = [2, 2].map((id) => JSON.parse(json({ id, method: "c" })) as unknown);
    expect((await client.post(JSON.stringify(batch))).status).toBe(400);
    expect(upstream.waiting).toEqual([]);
    stream.send({ id: 1, result: {} });
    expect((await first).status).toBe(200);
  });
});

describe("an upstream that fails", () => {
  test.each([
    ["401", (arrival: ScriptedRequest) => arrival.response.writeHead(401).end(), 401],
    ["a redirect", (arrival: ScriptedRequest) => arrival.response.writeHead(302).end(), 502],
    ["no stream", (arrival: ScriptedRequest) => arrival.response.writeHead(200).end("{}"), 502],
    ["a broken connection", (arrival: ScriptedRequest) => arrival.response.destroy(), 502],
    [
      "a stream that ends",
      (arrival: ScriptedRequest) => new OldStream(arrival).arrival.response.end(),
      502,
    ],
    [
      "an endpoint of another origin",
      (arrival: ScriptedRequest) => new OldStream(arrival).endpoint("https://evil.test/messages"),
      502,
    ],
  ] as const)("%s, instead of a stream", async (_name, fail, status) => {
    const replica = await start();
    const answer = new NewClient(replica).post({ id: 0, method: "initialize" });
    fail(await upstream.next());
    const { status: got, body, headers } = await answer;
    expect(got).toBe(status);
    expect(JSON.parse(body)).toMatchObject({ id: 0, error: { code: -32_000 } });
    expect(headers["mcp-session-id"]).toBeUndefined();
    expect(await replica.sessions("servers")).toBe(0);
    expect(replica.clock.pending).toEqual([]);
    expect(upstream.waiting).toEqual([]);
  });

  test("no endpoint event in time", async () => {
    const replica = await start();
    const answer = new NewClient(replica).post({ id: 0, method: "initialize" });
    const arrival = await upstream.next();
    void new OldStream(arrival);
    replica.clock.advance(15_000);
    expect((await answer).status).toBe(504);
    await until(() => arrival.response.destroyed);
  });

  test("an error instead of initialize's result leaves no session", async () => {
    const replica = await start();
    const answer = new NewClient(replica).post({ id: 0, method: "initialize" });
    const stream = new OldStream(await upstream.next());
    stream.endpoint();
    await accepted();
    stream.send({ id: 0, error: { code: -32_602, message: "no" } });
    const { status, headers, body } = await answer;
    expect([status, headers["mcp-session-id"]]).toEqual([200, undefined]);
    expect(JSON.parse(body)).toMatchObject({ id: 0, error: { code: -32_602 } });
    expect(await replica.sessions("servers")).toBe(0);
  });

  test.each([
    [400, 400, true],
    [401, 401, true],
    [503, 503, true],
    [302, 502, true],
    [404, 404, false],
  ])("a frame is answered %d: %d, and the session lives %j", async (status, expected, lives) => {
    const replica = await start();
    const { client } = await initialized(replica);
    const answer = client.post({ id: 1, method: "a" });
    await accepted(status);
    expect((await answer).status).toBe(expected);
    expect(await replica.sessions("servers")).toBe(lives ? 1 : 0);
    // The id is free again.
    if (lives) {
      const again = client.post({ id: 1, method: "a" });
      await accepted(400);
      expect((await again).status).toBe(400);
    }
  });

  test("a frame that is never accepted", async () => {
    const replica = await start();
    const { client } = await initialized(replica);
    const oneWay = client.post({ method: "notifications/a" });
    await upstream.next();
    replica.clock.advance(30_000);
    expect((await oneWay).status).toBe(504);
    const request = client.stream("POST", { id: 1, method: "a" });
    await upstream.next();
    replica.clock.advance(25_000);
    const answer = await request;
    replica.clock.advance(275_000);
    expect(await answer.message(1)).toMatchObject({ error: { code: -32_000 } });
    await until(() => answer.isEnded);
  });

  test("its stream ends: open requests fail, and the session is unknown", async () => {
    const replica = await start();
    const { client, stream } = await initialized(replica);
    const call = client.post({ id: 1, method: "a" });
    await accepted();
    const listening = await client.stream("GET");
    stream.arrival.response.destroy();
    const { status, body } = await call;
    expect(status).toBe(502);
    expect(JSON.parse(body)).toMatchObject({ id: 1, error: { code: -32_000 } });
    await until(() => listening.isEnded);
    expect((await client.post({ id: 2, method: "a" })).status).toBe(404);
    expect(replica.clock.pending).toEqual([]);
  });

  test("a message that is not JSON-RPC is dropped", async () => {
    const { client, stream } = await initialized(await start());
    const call = client.post({ id: 1, method: "a" });
    await accepted();
    stream.arrival.response.write("data: {\n\ndata: []\n\nevent: other\ndata: {}\n\n");
    stream.send({ id: 1, result: {} });
    expect((await call).status).toBe(200);
  });
});

describe("which answer a message belongs to", () => {
  test("responses by id, progress by token, the rest to GET", async () => {
    const { client, stream } = await initialized(await start());
    const listening = await client.stream("GET");
    const request = (id: unknown, progressToken: unknown) => ({
      id,
      method: "tools/call",
      params: { _meta: { progressToken } },
    });
    const calls = [rawEvents(client, request(1, "t")), rawEvents(client, request("1", 7))];
    await accepted();
    await accepted();
    stream.send({ method: "notifications/progress", params: { progressToken: "t", progress: 1 } });
    stream.send({ method: "notifications/progress", params: { progressToken: 7, progress: 2 } });
    stream.send({ method: "notifications/progress", params: { progressToken: "7", progress: 3 } });
    stream.send({ id: 1, method: "roots/list" });
    stream.send({ method: "notifications/cancelled", params: { requestId: 1 } });
    stream.send({ method: "notifications/message", params: {} });
    stream.send({ id: "1", result: { of: "string" } });
    stream.send({ id: 1, result: { of: "number" } });
    const [one, other] = await Promise.all(calls);
    await until(() => one?.isEnded === true && other?.isEnded === true);
    expect(one?.messages).toMatchObject([
      { params: { progress: 1 } },
      { id: 1, result: { of: "number" } },
    ]);
    expect(other?.messages).toMatchObject([
      { params: { progress: 2 } },
      { id: "1", result: { of: "string" } },
    ]);
    await until(() => listening.messages.length === 4);
    expect(listening.messages).toMatchObject([
      { params: { progress: 3 } },
      { id: 1, method: "roots/list" },
      { method: "notifications/cancelled" },
      { method: "notifications/message" },
    ]);
  });

  test("without GET: requests of the server and their cancellation go to an open POST", async () => {
    const { client, stream } = await initialized(await start());
    stream.send({ method: "notifications/a" });
    stream.send({ id: "s1", method: "roots/list" });
    const call = rawEvents(client, { id: 1, method: "tools/call" });
    await accepted();
    stream.send({ id: "s2", method: "ping" });
    stream.send({ method: "notifications/cancelled", params: { requestId: "s2" } });
    stream.send({ method: "notifications/b" });
    stream.send({ id: 1, result: {} });
    const answer = await call;
    await until(() => answer.isEnded);
    expect(answer.messages).toMatchObject([
      { id: "s1" },
      { id: "s2" },
      { method: "notifications/cancelled" },
      { id: 1, result: {} },
    ]);
    const listening = await client.stream("GET");
    await until(() => listening.messages.length === 2);
    expect(listening.messages).toMatchObject([
      { method: "notifications/a" },
      { method: "notifications/b" },
    ]);
  });

  test("a batch: each response is an event", async () => {
    const { client, stream } = await initialized(await start());
    const batch = [1, 2].map((id) => JSON.parse(json({ id, method: "ping" })) as unknown);
    const call = rawEvents(client, JSON.stringify(batch));
    await accepted();
    stream.send({ id: 2, result: {} });
    stream.send({ id: 1, result: {} });
    const answer = await call;
    await until(() => answer.isEnded);
    expect(answer.messages.map(({ id }) => id)).toEqual([2, 1]);
  });

  test("a response for a request that its client has left is dropped", async () => {
    const replica = await start();
    const { client, stream } = await initialized(replica);
    const call = rawEvents(client, { id: 1, method: "a" });
    await accepted();
    replica.clock.advance(25_000);
    (await call).answer.destroy();
    // The keep-alive timer of the answer ends with it; the idle timer begins.
    await until(() => replica.clock.pending.join() === "1800000");
    expect(upstream.waiting).toEqual([]);
    stream.send({ id: 1, result: { late: true } });
    const again = client.post({ id: 1, method: "a" });
    await accepted();
    stream.send({ id: 1, result: { late: false } });
    expect((await again).body).toContain("false");
  });

  const rawEvents = (client: NewClient, value: unknown): Promise<RawEvents> =>
    client.stream("POST", value);
});

describe("bounds", () => {
  test("the queue drops its oldest notifications, and keeps requests", async () => {
    const replica = await start({ limits: { queuedMessages: 3 } });
    const { client, stream } = await initialized(replica);
    stream.send({ id: "s", method: "roots/list" });
    for (const name of ["a", "b", "c", "d"]) stream.send({ method: `notifications/${name}` });
    await until(async () => (await dropped(replica)) === 2);
    const listening = await client.stream("GET");
    await until(() => listening.messages.length === 3);
    expect(listening.messages.map(({ method }) => method)).toEqual([
      "roots/list",
      "notifications/c",
      "notifications/d",
    ]);
  });

  test("the queue's bytes", async () => {
    const replica = await start({ limits: { queuedBytes: 100 } });
    const { stream } = await initialized(replica);
    stream.send({ method: "notifications/a" });
    stream.send({ method: `notifications/${"b".repeat(50)}` });
    await until(async () => (await dropped(replica)) === 1);
  });

  test("more requests of the server than the queue holds end the session", async () => {
    const replica = await start({ limits: { queuedMessages: 2 } });
    const { stream } = await initialized(replica);
    for (const id of ["a", "b", "c"]) stream.send({ id, method: "ping" });
    await until(async () => (await replica.sessions("servers")) === 0);
    await until(() => stream.arrival.response.destroyed);
  });

  test("sessions of an owner, and of all", async () => {
    const replica = await start({ limits: { sessionsPerOwner: 1, sessions: 2 } });
    await initialized(replica);
    const client = new NewClient(replica);
    const open = { id: 0, method: "initialize" };
    expect((await client.post(open)).status).toBe(429);
    const other = client.post(open, { "x-svc-mcp-owner": "b" });
    const stream = new OldStream(await upstream.next());
    expect((await client.post(open, { "x-svc-mcp-owner": "c" })).status).toBe(503);
    stream.arrival.response.destroy();
    await other;
  });

  test("a client that does not read holds the upstream back", async () => {
    const replica = await start({ limits: { unreadBytes: 4 * MIB } });
    const { client, stream } = await initialized(replica);
    const listening = await client.stream("GET");
    listening.answer.pause();
    for (let sent = 0; sent < 32; sent += 1) {
      stream.send({ method: "notifications/message", params: { data: "x".repeat(MIB) } });
    }
    await until(() => replica.clock.pending.includes(60_000));
    await manyRounds();
    listening.answer.resume();
    await until(() => listening.messages.length === 32);
  });

  test("a session without an open stream ends after 30 minutes", async () => {
    const replica = await start();
    const { client, stream } = await initialized(replica);
    const listening = await client.stream("GET");
    replica.clock.advance(3_600_000);
    expect(await replica.sessions("servers")).toBe(1);
    listening.answer.destroy();
    await until(() => replica.clock.pending.join() === "1800000");
    replica.clock.advance(1_799_999);
    expect(await replica.sessions("servers")).toBe(1);
    replica.clock.advance(1);
    expect(await replica.sessions("servers")).toBe(0);
    await until(() => stream.arrival.response.destroyed);
  });

  async function dropped(replica: Replica): Promise<number | undefined> {
    const metric = replica.registry.getSingleMetric("svc_mcp_bridge_dropped_messages_total");
    const { values } = (await metric?.get()) ?? { values: [] };
    return values.find(({ labels }) => labels["side"] === "servers")?.value;
  }
});

test("a long call becomes a stream, with comments", async () => {
  const replica = await start();
  const { client, stream } = await initialized(replica);
  const call = client.stream("POST", { id: 1, method: "a" });
  await accepted();
  replica.clock.advance(25_000);
  const answer = await call;
  replica.clock.advance(25_000);
  await until(() => answer.comments === 1);
  stream.send({ id: 1, result: {} });
  await until(() => answer.isEnded);
  expect(answer.messages).toMatchObject([{ id: 1 }]);
});

test("one GET stream at a time", async () => {
  const { client } = await initialized(await start());
  const first = await client.stream("GET");
  expect((await client.ask("GET")).status).toBe(409);
  first.answer.destroy();
  await until(async () => {
    const answer = await rawRequest(path.join(folder, "a-servers.sock"), TARGET, {
      headers: { ...HEADERS, "mcp-session-id": client.session },
    });
    cleanups.add(() => answer.destroy());
    return answer.statusCode === 200;
  });
});

test("DELETE, then 404", async () => {
  const { client, stream } = await initialized(await start());
  const listening = await client.stream("GET");
  expect((await client.ask("DELETE")).status).toBe(204);
  await until(() => listening.isEnded && stream.arrival.response.destroyed);
  expect((await client.ask("DELETE")).status).toBe(404);
  expect((await client.ask("GET")).status).toBe(404);
  expect((await client.post({ id: 1, method: "a" })).status).toBe(404);
});

test("a client that leaves during initialize leaves no session", async () => {
  const replica = await start();
  for (const withEndpoint of [false, true]) {
    const request = rawRequest(replica.serversSocket, TARGET, {
      method: "POST",
      headers: HEADERS,
      body: json({ id: 0, method: "initialize" }),
    });
    const stream = new OldStream(await upstream.next());
    if (withEndpoint) {
      stream.endpoint();
      await accepted();
    }
    // The answer becomes a stream, which can be left.
    if (withEndpoint) {
      replica.clock.advance(25_000);
      (await request).destroy();
    } else {
      replica.bridge.servers.closeAllConnections();
      await expect(request).rejects.toThrow();
    }
    await until(() => stream.arrival.response.destroyed);
    await until(async () => (await replica.sessions("servers")) === 0);
  }
});
