/** The bridge's side of clients, request by request: refusals, failures, bounds. */
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { until } from "../../../e2e/support/wait.ts";
import type { BridgeOptions } from "./bridge.ts";
import { newSessionId } from "./session-table.ts";
import {
  answerEvents,
  answerJson,
  type ScriptedRequest,
  Cleanups,
  json,
  manyRounds,
  type RawAnswer,
  rawAnswer,
  RawEvents,
  rawRequest,
  Replica,
  ScriptedServer,
} from "./testing.ts";

const KEY = "Bearer the-secret-key";
const OWNER = "key/server";
const MIB = 1024 * 1024;

let cleanups: Cleanups;
let folder: string;
let gateway: ScriptedServer;

beforeEach(async () => {
  cleanups = new Cleanups();
  folder = cleanups.folder();
  gateway = new ScriptedServer();
  await cleanups.listen(gateway.server, path.join(folder, "gateway.sock"));
});

afterEach(() => cleanups.run());

const start = (options: Partial<BridgeOptions> = {}): Promise<Replica> =>
  Replica.start(cleanups, folder, options);

/** A client of the old transport. */
class OldClient {
  readonly stream: RawEvents;
  readonly endpoint: string;
  readonly #replica: Replica;
  readonly #owner: string;

  private constructor(replica: Replica, owner: string, stream: RawEvents, endpoint: string) {
    this.#replica = replica;
    this.#owner = owner;
    this.stream = stream;
    this.endpoint = endpoint;
  }

  static async open(replica: Replica, owner = OWNER, headers: object = {}): Promise<OldClient> {
    const answer = await rawRequest(replica.clientsSocket, "/ext/mcp/test/sse", {
      headers: { authorization: KEY, "x-svc-mcp-owner": owner, ...headers },
    });
    expect(answer.statusCode).toBe(200);
    const stream = new RawEvents(answer);
    cleanups.add(() => answer.destroy());
    const { event, data } = await until(() => stream.events[0]);
    expect(event).toBe("endpoint");
    return new OldClient(replica, owner, stream, data);
  }

  async post(body: unknown, headers: object = {}): Promise<RawAnswer> {
    return rawAnswer(this.#replica.clientsSocket, this.endpoint, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "x-svc-mcp-owner": this.#owner,
        ...headers,
      },
      body: typeof body === "string" ? body : json(body),
    });
  }

  async send(value: unknown): Promise<void> {
    expect((await this.post(value)).status).toBe(202);
  }

  /** Through `initialize`, and until the gateway has refused GET. */
  async initialize(): Promise<void> {
    await this.send({ id: 0, method: "initialize", params: {} });
    answerJson(
      await gateway.next(),
      { id: 0, result: { protocolVersion: "2025-06-18" } },
      { headers: { "mcp-session-id": "session" } },
    );
    await this.stream.message(0);
  }
}

async function initialized(replica: Replica): Promise<OldClient> {
  const client = await OldClient.open(replica);
  await client.initialize();
  return client;
}

const isPost = ({ method }: ScriptedRequest): boolean => method === "POST";
const isGet = ({ method }: ScriptedRequest): boolean => method === "GET";
const isDelete = ({ method }: ScriptedRequest): boolean => method === "DELETE";

/** Opens the gateway's stream. */
async function listening(client: OldClient): Promise<ScriptedRequest> {
  await client.send({ method: "notifications/initialized" });
  (await gateway.next(isPost)).response.writeHead(202).end();
  return gateway.next(isGet);
}

describe("requests that are refused", () => {
  test.each([
    ["an unknown session", () => `/ext/mcp/test/message?session=${newSessionId()}`, 404],
    ["no session", () => "/ext/mcp/test/message", 404],
    ["a malformed session", () => "/ext/mcp/test/message?session=../x", 404],
    ["the session twice", (endpoint: string) => `${endpoint}&session=${newSessionId()}`, 404],
    ["another path", () => "/ext/mcp/test", 404],
    ["POST to the stream", () => "/ext/mcp/test/sse", 405],
  ] as const)("%s", async (_name, target, status) => {
    const replica = await start();
    const client = await OldClient.open(replica);
    const answer = await rawAnswer(replica.clientsSocket, target(client.endpoint), {
      method: "POST",
      headers: { "content-type": "application/json", "x-svc-mcp-owner": OWNER },
      body: json({ method: "notifications/initialized" }),
    });
    expect(answer.status).toBe(status);
    expect(JSON.parse(answer.body)).toMatchObject({ jsonrpc: "2.0", id: null });
    expect(gateway.waiting).toEqual([]);
  });

  test.each([
    ["another owner", { "x-svc-mcp-owner": "other/server" }, {}, 404],
    ["no owner", { "x-svc-mcp-owner": "" }, {}, 404],
    ["another media type", { "content-type": "text/plain" }, {}, 415],
    ["a compressed body", { "content-encoding": "gzip" }, {}, 415],
    ["no JSON", {}, "{", 400],
    ["a key twice", {}, '{"method":"a","Method":"b"}', 400],
    ["an empty batch", {}, "[]", 400],
    ["a request with a null id", {}, json({ id: null, method: "ping" }), 400],
    ["an unsafe id", {}, '{"id":9007199254740993,"method":"ping"}', 400],
    ["1 MiB + 1", {}, `${" ".repeat(MIB - 1)}{}`, 413],
  ] as const)("%s", async (_name, headers, body, status) => {
    const replica = await start();
    const client = await OldClient.open(replica);
    expect((await client.post(body, headers)).status).toBe(status);
    expect(gateway.waiting).toEqual([]);
  });

  test("1 MiB is taken", async () => {
    const client = await OldClient.open(await start());
    const frame = json({ method: "notifications/x" });
    await client.send(`${" ".repeat(MIB - frame.length)}${frame}`);
    expect((await gateway.next()).body).toHaveLength(MIB);
  });
});

test.each([
  ["", ""],
  ["/a", "/a"],
  ["/a/b-c_d.e~/", "/a/b-c_d.e~"],
  ["//evil.test", ""],
  ["/a/../b", ""],
  ["https://evil.test", ""],
  ["/a?b", ""],
  ["/a\\b", ""],
])("the endpoint under the prefix %j", async (prefix, expected) => {
  const client = await OldClient.open(await start(), OWNER, { "x-forwarded-prefix": prefix });
  expect(client.endpoint).toMatch(
    new RegExp(`^${expected}/ext/mcp/test/message\\?session=[\\w-]{43}$`),
  );
});

test("what is sent to the gateway: the caller's headers, and those of Streamable HTTP", async () => {
  const replica = await start();
  const client = await OldClient.open(replica, OWNER, {
    "x-api-key": "other",
    "x-svc-peer": "192.0.2.1",
    "x-request-id": "call-1",
    connection: "keep-alive, x-hop",
    "x-hop": "hop",
    "last-event-id": "9",
    traceparent: "of the stream",
    host: "gateway.test",
  });
  await client.initialize();
  await client.post({ id: 1, method: "ping" }, { traceparent: "of the frame" });
  const { request, body } = await gateway.next();
  expect(request.url).toBe("/ext/mcp/test");
  expect(request.headers).toEqual({
    accept: "application/json, text/event-stream",
    "accept-encoding": "identity",
    authorization: KEY,
    connection: "keep-alive",
    "content-length": String(body.length),
    "content-type": "application/json",
    host: "gateway.test",
    "mcp-protocol-version": "2025-06-18",
    "mcp-session-id": "session",
    traceparent: "of the frame",
    "x-api-key": "other",
    "x-svc-peer": "192.0.2.1",
  });
  expect(JSON.stringify(replica.log.lines)).not.toContain("secret");
});

describe("answers of the gateway", () => {
  const error = { code: -32_602, message: "Unknown tool" };

  test.each([
    ["JSON-RPC with the id", 400, json({ id: 1, error }), error],
    ["JSON-RPC with id null", 403, json({ id: null, error }), error],
    ["JSON-RPC without id", 403, json({ error }), error],
    ["JSON-RPC with another id", 400, json({ id: "server-error", error }), error],
    ["text", 503, "no healthy upstream", { code: -32_000 }],
    ["empty", 502, "", { code: -32_000 }],
    ["accepted, without an answer", 202, "", { code: -32_000 }],
    ["another media type", 200, "<html>", { code: -32_000 }],
    ["JSON with a line break in a string", 400, '{"error":{"message":"\n"}}', { code: -32_000 }],
  ])("%s", async (_name, status, body, expected) => {
    const client = await initialized(await start());
    await client.send({ id: 1, method: "tools/call" });
    (await gateway.next()).response.writeHead(status).end(body);
    expect(await client.stream.message(1)).toMatchObject({ id: 1, error: expected });
    expect(client.stream.isEnded).toBe(false);
  });

  test("a batch gets an answer for each request", async () => {
    const client = await initialized(await start());
    const batch = [1, "1"].map((id) => JSON.parse(json({ id, method: "ping" })) as unknown);
    await client.send(JSON.stringify(batch));
    const answer = [JSON.parse(json({ id: 1, result: {} })) as unknown];
    const { response } = await gateway.next();
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
    expect(await client.stream.message(1)).toMatchObject({ result: {} });
    expect(await client.stream.message("1")).toMatchObject({ error: { code: -32_000 } });
  });

  test("a lost session ends the stream", async () => {
    const replica = await start();
    const client = await initialized(replica);
    await client.send({ id: 1, method: "ping" });
    answerJson(await gateway.next(), { id: null, error }, { status: 404 });
    await until(() => client.stream.isEnded);
    expect(client.stream.messages.at(-1)).toMatchObject({ id: 1, error });
    expect((await client.post({ id: 2, method: "ping" })).status).toBe(404);
    expect(await replica.sessions("clients")).toBe(0);
  });

  test("404 without a session does not", async () => {
    const client = await OldClient.open(await start());
    await client.send({ id: 1, method: "initialize" });
    answerJson(await gateway.next(), { id: 1, error }, { status: 404 });
    await client.stream.message(1);
    await client.send({ id: 2, method: "initialize" });
    expect((await gateway.next()).body).toContain('"id":2');
    expect(client.stream.isEnded).toBe(false);
  });

  test("a key that is no longer accepted ends the stream", async () => {
    const client = await initialized(await start());
    await client.send({ id: 1, method: "ping" });
    answerJson(await gateway.next(), { id: 1, error }, { status: 401 });
    await until(() => client.stream.isEnded);
  });

  test("no answer to initialize: an error at the deadline, and frames behind it are sent", async () => {
    const replica = await start();
    const client = await OldClient.open(replica);
    await client.send({ id: 1, method: "initialize" });
    await client.send({ id: 2, method: "ping" });
    await gateway.next();
    await manyRounds();
    expect(gateway.waiting).toEqual([]);
    replica.clock.advance(60_000);
    expect(await client.stream.message(1)).toMatchObject({ error: { code: -32_000 } });
    expect((await gateway.next()).body).toContain("ping");
  });

  test("a gateway that is not there", async () => {
    gateway.server.close();
    const client = await OldClient.open(await start());
    await client.send({ id: 1, method: "initialize" });
    expect(await client.stream.message(1)).toMatchObject({ error: { code: -32_000 } });
  });

  test("a second initialize is refused", async () => {
    const client = await initialized(await start());
    await client.send({ id: 1, method: "initialize" });
    expect(await client.stream.message(1)).toMatchObject({ error: { code: -32_000 } });
    expect(gateway.waiting).toEqual([]);
  });
});

describe("streams that are cut", () => {
  test("a POST's stream is resumed where it ended", async () => {
    const replica = await start();
    const client = await initialized(replica);
    await client.send({ id: 1, method: "tools/call" });
    const first = await gateway.next();
    answerEvents(first)({ method: "notifications/message" }, "e1");
    await until(() => client.stream.messages.length === 2);
    first.response.destroy();
    const second = await resumed(replica);
    expect(second.request.headers).toMatchObject({
      "last-event-id": "e1",
      "mcp-session-id": "session",
      accept: "text/event-stream",
      authorization: KEY,
    });
    answerEvents(second)({ id: 1, result: {} }, "e2");
    expect(await client.stream.message(1)).toMatchObject({ result: {} });
    await until(() => second.response.destroyed);
  });

  test("it is given up when it brings nothing new", async () => {
    const replica = await start();
    const client = await initialized(replica);
    await client.send({ id: 1, method: "tools/call" });
    const first = await gateway.next();
    first.response.writeHead(200, { "content-type": "text/event-stream" });
    // A priming event: an id and no data.
    first.response.end("id: e0\nretry: 10\ndata: \n\n");
    for (let attempt = 0; attempt < 5; attempt += 1) {
      const arrival = await resumed(replica);
      expect(arrival.request.headers["last-event-id"]).toBe("e0");
      arrival.response.writeHead(503).end();
    }
    expect(await client.stream.message(1)).toMatchObject({ error: { code: -32_000 } });
  });

  test("without ids, the request fails at once", async () => {
    const client = await initialized(await start());
    await client.send({ id: 1, method: "tools/call" });
    const { response } = await gateway.next();
    response.writeHead(200, { "content-type": "text/event-stream" }).end(": \n\n");
    expect(await client.stream.message(1)).toMatchObject({ error: { code: -32_000 } });
  });

  test("the server's own stream is opened again, with waits that grow", async () => {
    const replica = await start();
    const client = await initialized(replica);
    const first = await listening(client);
    answerEvents(first)({ method: "notifications/tools/list_changed" }, "g1");
    await until(() => client.stream.messages.length === 2);
    first.response.end();
    const waits: number[] = [];
    for (let attempt = 0; attempt < 4; attempt += 1) {
      waits.push(await until(() => replica.clock.pending.find((ms) => ms < 20_000)));
      const arrival = await resumed(replica);
      expect(arrival.request.headers["last-event-id"]).toBe("g1");
      arrival.response.writeHead(503).end();
    }
    expect(waits).toEqual([500, 1_000, 2_000, 4_000]);
  });

  test.each([
    [405, false, false],
    [501, true, false],
    [404, false, true],
    [401, false, true],
    [403, false, true],
    [409, true, false],
  ])("GET is answered %d: asked again %j, ended %j", async (status, again, ended) => {
    const replica = await start();
    const client = await initialized(replica);
    (await listening(client)).response.writeHead(status).end();
    if (ended) await until(() => client.stream.isEnded);
    else if (again) await resumed(replica);
    else {
      // A frame's answer proves that the stream's answer has been handled.
      await client.send({ id: 1, method: "ping" });
      answerJson(await gateway.next(isPost), { id: 1, result: {} });
      await client.stream.message(1);
      expect(replica.clock.pending).toEqual([25_000]);
    }
  });

  /** Lets waits pass until the gateway is asked with GET. */
  async function resumed(replica: Replica): Promise<ScriptedRequest> {
    return until(async () => {
      const wait = replica.clock.pending.find((ms) => ms < 20_000);
      if (wait !== undefined) replica.clock.advance(wait);
      return gateway.waiting.some(isGet) ? gateway.next(isGet) : undefined;
    });
  }
});

describe("the client's end", () => {
  test("ends what is under way, and deletes the session", async () => {
    const replica = await start();
    const client = await initialized(replica);
    const stream = await listening(client);
    await client.send({ id: 1, method: "tools/call" });
    const call = await gateway.next(isPost);
    client.stream.answer.destroy();
    const { request, response } = await gateway.next(isDelete);
    expect(request.headers).toMatchObject({ "mcp-session-id": "session", authorization: KEY });
    response.writeHead(200).end();
    await until(() => call.response.destroyed && stream.response.destroyed);
    await until(() => replica.clock.pending.length === 0);
  });

  test("during initialize: the session is deleted when it is known", async () => {
    const replica = await start();
    const client = await OldClient.open(replica);
    await client.send({ id: 0, method: "initialize" });
    const call = await gateway.next();
    client.stream.answer.destroy();
    await until(async () => (await replica.sessions("clients")) === 0);
    answerJson(call, { id: 0, result: {} }, { headers: { "mcp-session-id": "late" } });
    expect((await gateway.next(isDelete)).request.headers["mcp-session-id"]).toBe("late");
  });
});

describe("bounds", () => {
  test("sessions of an owner, and of all", async () => {
    const replica = await start({ limits: { sessionsPerOwner: 2, sessions: 3 } });
    const [first] = [await OldClient.open(replica), await OldClient.open(replica)];
    const open = (owner: string): Promise<RawAnswer> =>
      rawAnswer(replica.clientsSocket, "/ext/mcp/test/sse", {
        headers: { "x-svc-mcp-owner": owner },
      });
    expect((await open(OWNER)).status).toBe(429);
    await OldClient.open(replica, "b");
    expect((await open("c")).status).toBe(503);
    first.stream.answer.destroy();
    await until(async () => (await replica.sessions("clients")) === 2);
    await OldClient.open(replica, "c");
  });

  test("frames under way", async () => {
    const replica = await start({ limits: { framesPerSession: 2 } });
    const client = await initialized(replica);
    await client.send({ id: 1, method: "a" });
    await client.send({ id: 2, method: "b" });
    expect((await client.post({ id: 3, method: "c" })).status).toBe(429);
    answerJson(await gateway.next(), { id: 1, result: {} });
    await client.stream.message(1);
    await client.send({ id: 3, method: "c" });
  });

  test("their bytes", async () => {
    const replica = await start({ limits: { frameBytesPerSession: 100 } });
    const client = await initialized(replica);
    await client.send({ id: 1, method: "a" });
    expect((await client.post({ id: 2, method: "b".repeat(80) })).status).toBe(429);
  });

  test("a message of the server", async () => {
    const replica = await start({ limits: { serverMessageBytes: 1_000 } });
    const client = await initialized(replica);
    const large = { result: { text: "x".repeat(500_000) } };
    await client.send({ id: 1, method: "a" });
    answerJson(await gateway.next(), { id: 1, ...large });
    expect(await client.stream.message(1)).toMatchObject({ error: { code: -32_000 } });
    await client.send({ id: 2, method: "a" });
    const call = await gateway.next();
    answerEvents(call)({ id: 2, ...large });
    expect(await client.stream.message(2)).toMatchObject({ error: { code: -32_000 } });
  });

  test("a client that does not read holds the gateway back, and is cut after a while", async () => {
    const replica = await start({ limits: { unreadBytes: 4 * MIB } });
    const client = await initialized(replica);
    client.stream.answer.pause();
    await client.send({ id: 1, method: "a" });
    const call = await gateway.next();
    const send = answerEvents(call);
    const part = { method: "notifications/message", params: { data: "x".repeat(MIB) } };
    // More than the buffers of four sockets hold.
    for (let sent = 0; sent < 32; sent += 1) send(part);
    await until(() => replica.clock.pending.includes(60_000), { what: "the writer to wait" });
    await manyRounds();
    // More was not read: the client would have been cut.
    expect(await replica.sessions("clients")).toBe(1);
    replica.clock.advance(60_000);
    await until(() => call.response.destroyed);
    expect(await replica.sessions("clients")).toBe(0);
  });

  test("a client that reads again gets everything", async () => {
    const replica = await start();
    const client = await initialized(replica);
    client.stream.answer.pause();
    await client.send({ id: 1, method: "a" });
    const send = answerEvents(await gateway.next());
    for (let sent = 0; sent < 32; sent += 1) {
      send({ method: "notifications/message", params: { sent, data: "x".repeat(MIB) } });
    }
    send({ id: 1, result: {} });
    await until(() => replica.clock.pending.includes(60_000));
    client.stream.answer.resume();
    await client.stream.message(1);
    expect(client.stream.messages).toHaveLength(34);
    expect(replica.clock.pending).not.toContain(60_000);
  });
});

test("a comment every 25 seconds", async () => {
  const replica = await start();
  const client = await OldClient.open(replica);
  for (let comments = 1; comments <= 3; comments += 1) {
    replica.clock.advance(25_000);
    await until(() => client.stream.comments === comments);
  }
});

test("a notification does not overtake another, nor a request the notifications before it", async () => {
  const client = await initialized(await start());
  await client.send({ method: "notifications/a" });
  await client.send({ method: "notifications/b" });
  await client.send({ id: 1, method: "c" });
  const first = await gateway.next();
  expect(first.body).toContain("notifications/a");
  await manyRounds();
  expect(gateway.waiting).toEqual([]);
  first.response.writeHead(202).end();
  const second = await gateway.next();
  expect(second.body).toContain("notifications/b");
  await manyRounds();
  expect(gateway.waiting).toEqual([]);
  second.response.writeHead(202).end();
  expect((await gateway.next()).body).toContain('"id":1');
  // The request is not answered: neither requests nor notifications wait for it.
  await client.send({ id: 2, method: "d" });
  expect((await gateway.next()).body).toContain('"id":2');
  await client.send({ method: "notifications/cancelled", params: { requestId: 1 } });
  expect((await gateway.next()).body).toContain("cancelled");
});

test("a notification that is never answered delays the others only until its deadline", async () => {
  const replica = await start();
  const client = await initialized(replica);
  await client.send({ method: "notifications/a" });
  await client.send({ method: "notifications/b" });
  await gateway.next();
  replica.clock.advance(30_000);
  expect((await gateway.next()).body).toContain("notifications/b");
});
