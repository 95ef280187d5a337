/** Replicas that fail, and requests for sessions that another replica holds. */
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { until } from "../../../e2e/support/wait.ts";
import { FakeClock } from "../../platform/testing.ts";
import { BusUnavailable, MemoryBus } from "./bus.ts";
import {
  Cleanups,
  json,
  rawAnswer,
  RawEvents,
  type SocketRequest,
  rawRequest,
  Replica,
  ScriptedServer,
} from "./testing.ts";

const MIB = 1024 * 1024;

/** A bus that can be lost. */
class LossyBus extends MemoryBus {
  isLost = false;
  /** Messages arrive, and their answers do not. */
  losesAnswers = false;
  /** Names of processes that have died. */
  isDead = (_name: string): boolean => false;

  override async send(name: string, message: string): Promise<string | undefined> {
    if (this.isLost) throw new BusUnavailable("the test has lost it");
    const answer = await (this.isDead(name) ? undefined : super.send(name, message));
    if (this.losesAnswers) throw new BusUnavailable("the test has lost the answer");
    return answer;
  }
}

let cleanups: Cleanups;
let folder: string;
let server: ScriptedServer;
let bus: LossyBus;
let clock: FakeClock;
let a: Replica;
let b: Replica;

beforeEach(async () => {
  cleanups = new Cleanups();
  folder = cleanups.folder();
  server = new ScriptedServer();
  bus = new LossyBus();
  clock = new FakeClock();
  await cleanups.listen(server.server, path.join(folder, "egress.sock"));
  a = await Replica.start(cleanups, folder, { bus, clock }, "a");
  b = await Replica.start(cleanups, folder, { bus, clock }, "b");
});

afterEach(() => cleanups.run());

const HEADERS = {
  host: "mcp.test",
  "content-type": "application/json",
  "x-svc-mcp-owner": "key/server",
  "x-svc-mcp-egress": "cluster",
};

/** Initializes a session that replica A holds. */
async function held(): Promise<{
  readonly session: string;
  readonly send: (value: unknown) => void;
}> {
  const answer = rawAnswer(a.serversSocket, "/sse", {
    method: "POST",
    headers: HEADERS,
    body: json({ id: 0, method: "initialize" }),
  });
  const { response } = await server.next();
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.write("event: endpoint\ndata: /messages\n\n");
  (await server.next()).response.writeHead(202).end();
  const send = (value: unknown): void => void response.write(`data: ${json(value)}\n\n`);
  send({ id: 0, result: {} });
  return { session: String((await answer).headers["mcp-session-id"]), send };
}

const request = (session: string, value?: unknown, headers: object = {}): SocketRequest => ({
  method: value === undefined ? "GET" : "POST",
  headers: { ...HEADERS, "mcp-session-id": session, ...headers },
  ...(value !== undefined && { body: json(value) }),
});

async function streamAt(replica: Replica, session: string): Promise<RawEvents> {
  const answer = await rawRequest(replica.serversSocket, "/sse", request(session));
  expect(answer.statusCode).toBe(200);
  cleanups.add(() => answer.destroy());
  return new RawEvents(answer);
}

test("another owner, and another upstream, do not find the session at another replica", async () => {
  const { session } = await held();
  for (const headers of [{ "x-svc-mcp-owner": "other" }, { "x-svc-mcp-egress": "other" }]) {
    for (const value of [{ id: 1, method: "a" }, { method: "notifications/a" }, undefined]) {
      const { status } = await rawAnswer(b.serversSocket, "/sse", request(session, value, headers));
      expect(status).toBe(404);
    }
    const deleted = { ...request(session, undefined, headers), method: "DELETE" };
    expect((await rawAnswer(b.serversSocket, "/sse", deleted)).status).toBe(404);
  }
  expect(server.waiting).toEqual([]);
  expect(await a.sessions("servers")).toBe(1);
});

test("a frame of a client at another replica: taken, of another owner, unknown", async () => {
  const gateway = new ScriptedServer();
  await cleanups.listen(gateway.server, path.join(folder, "gateway.sock"));
  const stream = new RawEvents(
    await rawRequest(a.clientsSocket, "/ext/mcp/test/sse", {
      headers: { "x-svc-mcp-owner": "key/server", authorization: "Bearer key" },
    }),
  );
  cleanups.add(() => stream.answer.destroy());
  const { data } = await until(() => stream.events[0]);
  const post = async (target: string, headers: object = {}): Promise<number> => {
    const frame = { id: 1, method: "initialize" };
    return (await rawAnswer(b.clientsSocket, target, request("", frame, headers))).status;
  };
  expect(await post(data, { "x-svc-mcp-owner": "other" })).toBe(404);
  expect(await post(data.replace(/.{4}$/, "AAAA"))).toBe(404);
  expect(gateway.waiting).toEqual([]);
  expect(await post(data)).toBe(202);
  expect((await gateway.next()).request.headers.authorization).toBe("Bearer key");
});

test("one GET stream in all replicas; that of a dead replica does not count", async () => {
  const { session, send } = await held();
  const first = await streamAt(b, session);
  for (const replica of [a, b]) {
    const { status } = await rawAnswer(replica.serversSocket, "/sse", request(session));
    expect(status).toBe(409);
  }
  send({ method: "notifications/a" });
  await until(() => first.messages.length === 1);
  bus.isDead = (name) => name.startsWith("sink:");
  const second = await streamAt(a, session);
  send({ method: "notifications/b" });
  await until(() => second.messages.length === 1);
});

test("a lost bus: 503 at another replica, and nothing at the holder", async () => {
  const { session, send } = await held();
  bus.isLost = true;
  const value = { id: 1, method: "a" };
  expect((await rawAnswer(b.serversSocket, "/sse", request(session, value))).status).toBe(503);
  expect((await rawAnswer(b.serversSocket, "/sse", request(session))).status).toBe(503);
  const deleted = { ...request(session), method: "DELETE" };
  expect((await rawAnswer(b.serversSocket, "/sse", deleted)).status).toBe(503);
  const frame = { ...request(session, { id: 1, method: "a" }) };
  const old = `/ext/mcp/test/message?session=${session}`;
  expect((await rawAnswer(b.clientsSocket, old, frame)).status).toBe(503);
  const call = rawAnswer(a.serversSocket, "/sse", request(session, value));
  (await server.next()).response.writeHead(202).end();
  send({ id: 1, result: {} });
  expect((await call).status).toBe(200);
});

test.each([
  ["messages", { isLost: true, losesAnswers: false }],
  ["answers", { isLost: false, losesAnswers: true }],
])("a bus that loses %s for a moment: each arrives once", async (_name, loss) => {
  const { session, send } = await held();
  const stream = await streamAt(b, session);
  Object.assign(bus, loss);
  send({ method: "notifications/a" });
  send({ method: "notifications/b" });
  await until(() => clock.pending.includes(500));
  Object.assign(bus, { isLost: false, losesAnswers: false });
  clock.advance(500);
  await until(() => stream.messages.some(({ method }) => method === "notifications/b"));
  expect(stream.messages.map(({ method }) => method)).toEqual([
    "notifications/a",
    "notifications/b",
  ]);
});

test("a message of 5 MiB", async () => {
  const { session, send } = await held();
  const call = rawAnswer(b.serversSocket, "/sse", request(session, { id: 1, method: "a" }));
  (await server.next()).response.writeHead(202).end();
  // Parts may divide a pair of surrogates.
  const text = `x${"😀".repeat((5 * MIB) / 4)}`;
  send({ id: 1, result: { text } });
  expect(JSON.parse((await call).body)).toEqual({ jsonrpc: "2.0", id: 1, result: { text } });
});

test("the holder dies: requests at other replicas end with an error", async () => {
  const { session } = await held();
  const call = rawRequest(b.serversSocket, "/sse", request(session, { id: 1, method: "a" }));
  (await server.next()).response.writeHead(202).end();
  bus.isDead = (name) => name.startsWith("server:");
  // The answer becomes a stream, and the holder is asked whether it is there.
  clock.advance(25_000);
  const events = new RawEvents(await call);
  expect(await events.message(1)).toMatchObject({ error: { code: -32_000 } });
  await until(() => events.isEnded);
});

test("the session ends: so do requests and streams at other replicas", async () => {
  const { session } = await held();
  const stream = await streamAt(b, session);
  const call = rawAnswer(b.serversSocket, "/sse", request(session, { id: 1, method: "a" }));
  (await server.next()).response.writeHead(202).end();
  const deleted = { ...request(session), method: "DELETE" };
  expect((await rawAnswer(b.serversSocket, "/sse", deleted)).status).toBe(204);
  expect((await call).status).toBe(502);
  await until(() => stream.isEnded);
  await until(() => clock.pending.length === 0);
});

test("a replica dies with a stream: the holder forgets it", async () => {
  const { session, send } = await held();
  await streamAt(b, session);
  bus.isDead = (name) => name.startsWith("sink:");
  send({ method: "notifications/lost" });
  await until(() => clock.pending.includes(1_800_000), { what: "the session to be idle" });
});
