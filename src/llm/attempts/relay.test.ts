/** The relay between two Unix sockets: Envoy's first pass is a client, its second pass a server. */
import { type EventEmitter, once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import http from "node:http";
import os from "node:os";
import path from "node:path";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { CALL_ID_HEADER, InternalHeader } from "../../envoy/config/names.ts";
import { FakeClock } from "../../platform/testing.ts";
import type { Call } from "../call.ts";
import type { Usage } from "../dialects/dialect.ts";
import { Relay } from "./relay.ts";
import { ANSWERS, chat, EVENT_STREAM, STREAMS } from "../testing-samples.ts";
import { Gateway, provider } from "../testing.ts";
import { eventually } from "../../../e2e/support/wait.ts";

const USAGE = { inputTokens: 100, cachedInputTokens: 20, outputTokens: 7 };
const JSON_TYPE = { "content-type": "application/json" };
/** Time that an attempt waits for its call, and a call for the rest of its answer. */
const [CLAIM_MS, REST_MS] = [2_000, 600_000];

/** A request that has arrived at the provider, and its answer. */
interface Arrived {
  readonly request: http.IncomingMessage;
  readonly response: http.ServerResponse;
}

let dir: string;
let clock: FakeClock;
let gateway: Gateway;
let relay: Relay;
let servers: http.Server[];
let arrivals: Arrived[];
let clients: http.ClientRequest[];
let defects: unknown[];

beforeEach(async () => {
  dir = mkdtempSync(path.join(os.tmpdir(), "svc-relay-"));
  clock = new FakeClock();
  gateway = new Gateway(provider("openai"), provider("anthropic"), provider("gemini"));
  [arrivals, clients, defects] = [[], [], []];
  relay = new Relay({
    calls: gateway.calls,
    clock,
    envoySocket: path.join(dir, "envoy.sock"),
    onDefect: (error) => defects.push(error),
  });
  const envoy = http.createServer((request, response) => arrivals.push({ request, response }));
  servers = [relay.createServer(), envoy];
  for (const [index, server] of servers.entries()) {
    server.listen(path.join(dir, index === 0 ? "relay.sock" : "envoy.sock"));
    await once(server, "listening");
  }
});

afterEach(() => {
  relay.close();
  for (const client of clients) client.destroy();
  for (const server of servers) server.closeAllConnections();
  for (const server of servers) server.close();
  rmSync(dir, { recursive: true, force: true });
});

/** Begins a call of the gateway; its dialect is that of the provider. */
function begun(model = "openai/m", requestPath?: string, body: object = chat(model)): Call {
  const trip = gateway.trip();
  trip.request({ ...(requestPath !== undefined && { path: requestPath }), body });
  const ids = [...Array(9).keys()].map((n) => `call-${n + 1}`);
  const call = ids.map((id) => gateway.calls.get(id)).findLast((each) => each !== undefined);
  if (call === undefined) throw new Error(JSON.stringify(trip.exchange.last));
  return call;
}

interface Sent {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

function send(id: string, options: Sent = {}, body = "{}"): http.ClientRequest {
  const client = http.request({
    socketPath: path.join(dir, "relay.sock"),
    method: "POST",
    path: "/v1/chat/completions",
    ...options,
    headers: { [CALL_ID_HEADER]: id, host: "openai.test", ...options.headers },
  });
  client.on("error", () => undefined);
  client.end(body);
  clients.push(client);
  return client;
}

async function arrived(number = 1): Promise<Arrived> {
  return eventually(() => {
    const found = arrivals[number - 1];
    if (found === undefined) throw new Error("nothing has arrived");
    return found;
  });
}

/** Resolves when a request or a connection is over, by an error or not. */
function closed(stream: EventEmitter): Promise<void> {
  return new Promise((resolve) => stream.once("close", resolve));
}

async function answerTo(client: http.ClientRequest): Promise<http.IncomingMessage> {
  const [answer] = (await once(client, "response")) as [http.IncomingMessage];
  answer.on("error", () => undefined);
  return answer;
}

async function bodyOf(stream: http.IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of stream) parts.push(part as Buffer);
  return Buffer.concat(parts).toString();
}

/** Ends the client, and resolves when the relay has noticed. */
async function leave(client: http.ClientRequest): Promise<void> {
  client.destroy();
  await eventually(() => expect(clock.pending).toEqual([CLAIM_MS]));
}

/** Claims a call; `told` has the usage of its answer once it is read. */
function claim(call: Call): { readonly claimed: boolean; readonly told: (Usage | undefined)[] } {
  const told: (Usage | undefined)[] = [];
  return { claimed: relay.claim(call, (usage) => told.push(usage)), told };
}

describe("a client that stays", () => {
  test("gets the provider's answer as it is, and the provider its request", async () => {
    const call = begun();
    const client = send(
      call.request.id,
      { method: "PUT", path: "/v1/x?y=1", headers: { "x-a": "1" } },
      "the body",
    );
    const { request, response } = await arrived();
    expect(request).toMatchObject({ method: "PUT", url: "/v1/x?y=1" });
    expect(request.headers).toMatchObject({ host: "openai.test", "x-a": "1" });
    expect(request.rawHeaders.filter((name) => name.toLowerCase() === "host")).toHaveLength(1);
    expect(await bodyOf(request)).toBe("the body");
    response.writeHead(201, { "X-B": "2", ...JSON_TYPE }).end('{"a":1}');
    const answer = await answerTo(client);
    expect(answer.statusCode).toBe(201);
    expect(answer.headers).toMatchObject({ "x-b": "2", ...JSON_TYPE });
    expect(answer.rawHeaders).toContain("X-B");
    expect(await bodyOf(answer)).toBe('{"a":1}');
    expect(clock.pending).toEqual([]);
  });

  test("gets the head of an answer before its body", async () => {
    const client = send(begun().request.id);
    const { response } = await arrived();
    response.writeHead(200, EVENT_STREAM).flushHeaders();
    expect((await answerTo(client)).statusCode).toBe(200);
    response.end();
  });

  test("gets an answer that is larger than all buffers whole", async () => {
    const client = send(begun().request.id);
    const { response } = await arrived();
    const body = "0123456789".repeat(800_000);
    response.writeHead(200, { "content-type": "text/plain" }).end(body);
    const answer = await answerTo(client);
    answer.pause();
    expect((await bodyOf(answer)) === body).toBe(true);
  });

  test("leaves nothing behind on its connection each time that it is slow", async () => {
    const call = begun();
    const responses: http.ServerResponse[] = [];
    servers[0]?.prependListener("request", (_request, response) => responses.push(response));
    const client = send(call.request.id);
    const { response } = await arrived();
    response.writeHead(200, { "content-type": "text/plain" }).flushHeaders();
    const answer = await answerTo(client);
    const listeners = responses[0]?.listenerCount("close");
    for (let round = 0; round < 20; round += 1) {
      response.write("x".repeat(1 << 20));
      for (let got = 0; got < 1 << 20;) {
        const part = answer.read() as Buffer | null;
        if (part === null) await once(answer, "readable");
        else got += part.length;
      }
    }
    expect(responses[0]?.listenerCount("close")).toBe(listeners);
    response.end();
  });

  test("gets a broken connection when the provider's answer breaks", async () => {
    const client = send(begun().request.id);
    const { response } = await arrived();
    response.writeHead(200, { ...JSON_TYPE, "content-length": "10" }).write("half");
    const answer = await answerTo(client);
    response.destroy();
    await expect(bodyOf(answer)).rejects.toThrow("aborted");
  });

  test("gets a broken connection when the provider does not answer", async () => {
    const client = send(begun().request.id);
    const [broken, answered] = [closed(client), vi.fn()];
    client.on("response", answered);
    (await arrived()).request.destroy();
    await broken;
    expect(answered).not.toHaveBeenCalled();
  });

  test("gets Envoy's own reply without its headers", async () => {
    const client = send(begun().request.id);
    const headers = { [InternalHeader.local]: "UF x", "content-type": "text/plain", "x-b": "2" };
    (await arrived()).response.writeHead(503, headers).end("no upstream");
    const answer = await answerTo(client);
    expect(answer.statusCode).toBe(503);
    expect(answer.headers).toMatchObject(JSON_TYPE);
    expect(answer.headers).not.toHaveProperty(InternalHeader.local);
    expect(answer.headers).not.toHaveProperty("x-b");
  });
});

test("a request of no known call is refused, and reaches no provider", async () => {
  const unknown = await answerTo(send("call-99"));
  expect(unknown.statusCode).toBe(421);
  const none = await answerTo(send("call-1", { headers: { [CALL_ID_HEADER]: "" } }));
  expect(none.statusCode).toBe(421);
  expect(arrivals).toEqual([]);
});

test("a defect ends the request, and is reported", async () => {
  const defect = new Error("broken");
  vi.spyOn(gateway.calls, "get").mockImplementation(() => {
    throw defect;
  });
  await closed(send("call-1"));
  expect(defects).toEqual([defect]);
});

describe("a client that leaves, and whose call claims the answer", () => {
  test.each([
    ["openai/m", ANSWERS.openai],
    ["anthropic/m", ANSWERS.anthropic],
    ["gemini/m", ANSWERS.gemini],
  ])("is billed what the rest of a whole answer of %s reports", async (model, answer) => {
    const call = begun(model);
    const client = send(call.request.id);
    const { response } = await arrived();
    await leave(client);
    const { claimed, told } = claim(call);
    expect(claimed).toBe(true);
    expect(clock.pending).toEqual([REST_MS]);
    clock.advance(REST_MS - 1);
    response.writeHead(200, JSON_TYPE).end(JSON.stringify(answer));
    await eventually(() => expect(told).toMatchObject([USAGE]));
    expect(clock.pending).toEqual([]);
  });

  test.each(["openai", "anthropic", "gemini"] as const)(
    "is billed what the rest of a stream of %s reports",
    async (dialect) => {
      const call = begun(`${dialect}/m`);
      const client = send(call.request.id);
      const { response } = await arrived();
      const [first, ...rest] = STREAMS[dialect];
      response.writeHead(200, { "content-type": "Text/Event-Stream; charset=utf-8" }).write(first);
      await answerTo(client);
      await leave(client);
      const { told } = claim(call);
      for (const part of rest) response.write(part);
      response.end();
      await eventually(() => expect(told).toMatchObject([USAGE]));
    },
  );

  const RESPONSE = {
    usage: {
      input_tokens: 100,
      output_tokens: 7,
      input_tokens_details: { cached_tokens: 20 },
    },
  };
  const EVENT = { type: "response.completed", response: RESPONSE };
  test.each([
    ["a whole answer", JSON_TYPE, JSON.stringify(RESPONSE)],
    ["a stream", EVENT_STREAM, `event: ${EVENT.type}\ndata: ${JSON.stringify(EVENT)}\n\n`],
  ])("of the Responses API, too: %s", async (_name, headers, body) => {
    const call = begun("openai/m", "/v1/responses", {
      model: "openai/m",
      input: "x",
      store: false,
    });
    const client = send(call.request.id);
    const { response } = await arrived();
    await leave(client);
    const { told } = claim(call);
    response.writeHead(200, headers).end(body);
    await eventually(() => expect(told).toMatchObject([USAGE]));
  });

  test("is billed what a compressed answer reports", async () => {
    const call = begun();
    const client = send(call.request.id);
    const { response } = await arrived();
    await leave(client);
    const { told } = claim(call);
    const body = gzipSync(JSON.stringify(ANSWERS.openai));
    response.writeHead(200, { ...JSON_TYPE, "content-encoding": "gzip" });
    // In two parts, which are only one compressed text together.
    response.write(body.subarray(0, 20));
    response.end(body.subarray(20));
    await eventually(() => expect(told).toMatchObject([USAGE]));
  });

  test.each([
    ["an error", 400, JSON_TYPE, JSON.stringify(ANSWERS.openai)],
    ["an answer that is not JSON", 200, JSON_TYPE, "{"],
    ["a stream that ends before its usage", 200, EVENT_STREAM, STREAMS.openai[1] as string],
    ["more than 32 MiB", 200, JSON_TYPE, " ".repeat(32 << 20) + JSON.stringify(ANSWERS.openai)],
  ])("learns no usage of %s", async (_name, status, headers, body) => {
    const call = begun();
    const client = send(call.request.id);
    const { response } = await arrived();
    await leave(client);
    const { told } = claim(call);
    response.writeHead(status, headers).end(body);
    await eventually(() => expect(told).toEqual([undefined]));
  });

  test("is billed what an answer of 32 MiB reports", async () => {
    const call = begun();
    const client = send(call.request.id);
    const { response } = await arrived();
    await leave(client);
    const { told } = claim(call);
    response.writeHead(200, JSON_TYPE).end(JSON.stringify(ANSWERS.openai).padEnd(32 << 20));
    await eventually(() => expect(told).toMatchObject([USAGE]));
  });

  test("learns no usage of an answer that breaks, though its bytes report one", async () => {
    const call = begun();
    const client = send(call.request.id);
    const { response } = await arrived();
    await leave(client);
    const { told } = claim(call);
    const headers = { ...JSON_TYPE, "content-length": "100000" };
    response.writeHead(200, headers).write(JSON.stringify(ANSWERS.openai));
    await new Promise((resolve) => response.write(" ", resolve));
    response.destroy();
    await eventually(() => expect(told).toEqual([undefined]));
  });

  test("waits for the rest for a bounded time, then ends the request", async () => {
    const call = begun();
    const client = send(call.request.id);
    const { request } = await arrived();
    await leave(client);
    const { told } = claim(call);
    const over = closed(request.socket);
    clock.advance(REST_MS - 1);
    expect(told).toEqual([]);
    clock.advance(1);
    expect(told).toEqual([undefined]);
    await over;
    expect(claim(call)).toEqual({ claimed: false, told: [] });
  });

  test("may claim before the relay has noticed that the client left", async () => {
    const call = begun();
    const client = send(call.request.id);
    const { response } = await arrived();
    const { told } = claim(call);
    expect(clock.pending).toEqual([REST_MS]);
    client.destroy();
    response.writeHead(200, JSON_TYPE).write(" ");
    await eventually(() => expect(response.writableNeedDrain).toBe(false));
    response.end(JSON.stringify(ANSWERS.openai));
    await eventually(() => expect(told).toMatchObject([USAGE]));
  });

  test("learns the usage at once of an answer that was read before it left", async () => {
    const call = begun();
    const client = send(call.request.id);
    (await arrived()).response.writeHead(200, JSON_TYPE).end(JSON.stringify(ANSWERS.openai));
    await bodyOf(await answerTo(client));
    const { claimed, told } = claim(call);
    expect(claimed).toBe(true);
    expect(told).toMatchObject([USAGE]);
  });

  test("a slow client that leaves does not hold up the rest of a large answer", async () => {
    const call = begun();
    const client = send(call.request.id);
    const { response } = await arrived();
    response.writeHead(200, JSON_TYPE).write(" ".repeat(8 << 20));
    (await answerTo(client)).pause();
    await leave(client);
    const { told } = claim(call);
    response.end(JSON.stringify(ANSWERS.openai));
    await eventually(() => expect(told).toMatchObject([USAGE]));
  });
});

describe("a client that leaves, and whose call claims nothing", () => {
  test("ends the request at the provider after two seconds", async () => {
    const call = begun();
    const client = send(call.request.id);
    const { request } = await arrived();
    await leave(client);
    const over = closed(request.socket);
    clock.advance(CLAIM_MS);
    await over;
    expect(claim(call)).toEqual({ claimed: false, told: [] });
  });

  test("a call without an attempt here has nothing to claim", () => {
    expect(claim(begun())).toEqual({ claimed: false, told: [] });
  });
});

test("of two attempts of a call, the latest is the one that is claimed", async () => {
  const call = begun();
  const first = send(call.request.id);
  const one = await arrived();
  const second = send(call.request.id);
  const two = await arrived(2);
  // The end of the first attempt does not forget the second.
  one.response.writeHead(500, JSON_TYPE).end("{}");
  await bodyOf(await answerTo(first));
  await leave(second);
  const { claimed, told } = claim(call);
  expect(claimed).toBe(true);
  two.response.writeHead(200, JSON_TYPE).end(JSON.stringify(ANSWERS.openai));
  await eventually(() => expect(told).toMatchObject([USAGE]));
});

test("closing ends what is under way", async () => {
  const call = begun();
  const client = send(call.request.id);
  const { request } = await arrived();
  const ended = [closed(client), closed(request.socket)];
  const { told } = claim(call);
  relay.close();
  expect(told).toEqual([undefined]);
  await Promise.all(ended);
});
