/** Helpers for the tests of the bridge: MCP servers and clients by the official SDK. */
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import http from "node:http";
import type { AddressInfo } from "node:net";
import os from "node:os";
import path from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { SSEServerTransport } from "@modelcontextprotocol/sdk/server/sse.js";
import {
  type EventStore,
  StreamableHTTPServerTransport,
} from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  EmptyResultSchema,
  ListRootsRequestSchema,
  ToolListChangedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { createParser } from "eventsource-parser";
import { Registry } from "prom-client";
import * as z from "zod";
import { until } from "../../../e2e/support/wait.ts";
import { CapturedLog, FakeClock } from "../../platform/testing.ts";
import { type Bridge, type BridgeOptions, createBridge } from "./bridge.ts";
import { MemoryBus } from "./bus.ts";
import { BRIDGE_TIMES } from "./limits.ts";

/** Closes what a test has started, last first. */
export class Cleanups {
  readonly #actions: (() => unknown)[] = [];

  add(action: () => unknown): void {
    this.#actions.push(action);
  }

  async run(): Promise<void> {
    for (const action of this.#actions.splice(0).toReversed()) await action();
  }

  folder(): string {
    const folder = mkdtempSync(path.join(os.tmpdir(), "svc-mcp-"));
    this.add(() => rmSync(folder, { recursive: true, force: true }));
    return folder;
  }

  async listen(server: http.Server, at: string | number): Promise<void> {
    await new Promise<void>((resolve) =>
      typeof at === "string" ? server.listen(at, resolve) : server.listen(at, "127.0.0.1", resolve),
    );
    this.add(() => {
      server.close();
      server.closeAllConnections();
    });
  }
}

export const portOf = (server: http.Server): number => (server.address() as AddressInfo).port;

/**
 * Lets events happen that must not: several thousand rounds of the event loop, in each of which
 * every socket is read.
 */
export async function manyRounds(): Promise<void> {
  for (let round = 0; round < 3_000; round += 1) {
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** What the tools of the test's MCP server have seen, and what lets them go on. */
export class ToolWorld {
  readonly cancelled: string[] = [];
  readonly started: string[] = [];
  readonly servers: McpServer[] = [];
  readonly headers: http.IncomingHttpHeaders[] = [];
  #release = Promise.withResolvers<void>();

  release(): void {
    this.#release.resolve();
  }

  /** A server with one tool for each part of the protocol. */
  createServer(): McpServer {
    const server = new McpServer(
      { name: "test", version: "1" },
      { capabilities: { logging: {}, tools: { listChanged: true } } },
    );
    const text = (value: string) => ({ content: [{ type: "text" as const, text: value }] });
    server.registerTool("echo", { inputSchema: { text: z.string() } }, ({ text: said }) =>
      text(said),
    );
    server.registerTool("progress", { inputSchema: {} }, async (_args, extra) => {
      for (let progress = 1; progress <= 3; progress += 1) {
        await extra.sendNotification({
          method: "notifications/progress",
          params: { progressToken: extra["_meta"]?.progressToken ?? "none", progress, total: 3 },
        });
        // The SDK's client loses progress that arrives together with the answer.
        await extra.sendRequest({ method: "ping" }, EmptyResultSchema);
      }
      return text("done");
    });
    server.registerTool("wait", { inputSchema: {} }, async (_args, { signal, requestId }) => {
      this.started.push(String(requestId));
      signal.addEventListener("abort", () => this.cancelled.push(String(requestId)));
      await Promise.race([
        this.#release.promise,
        new Promise((resolve) => signal.addEventListener("abort", resolve)),
      ]);
      return text("released");
    });
    server.registerTool("sample", { inputSchema: {} }, async () => {
      const { content } = await server.server.createMessage({
        messages: [{ role: "user", content: { type: "text", text: "Hello" } }],
        maxTokens: 10,
      });
      return text(JSON.stringify(content));
    });
    server.registerTool("elicit", { inputSchema: {} }, async () => {
      const { action } = await server.server.elicitInput({
        message: "Which?",
        requestedSchema: { type: "object", properties: { which: { type: "string" } } },
      });
      return text(action);
    });
    server.registerTool("roots", { inputSchema: {} }, async () => {
      const { roots } = await server.server.listRoots();
      return text(roots.map(({ uri }) => uri).join());
    });
    server.registerTool("ping", { inputSchema: {} }, async () => {
      await server.server.ping();
      return text("pong");
    });
    this.servers.push(server);
    return server;
  }
}

/** An SDK server of Streamable HTTP. */
export class StreamableUpstream {
  readonly server: http.Server;
  readonly sessions = new Map<string, StreamableHTTPServerTransport>();
  readonly requests: {
    readonly method: string;
    readonly headers: http.IncomingHttpHeaders;
    readonly url: string;
  }[] = [];
  /** Answers instead of the SDK. @returns whether it has */
  intercept: (request: http.IncomingMessage, response: http.ServerResponse) => boolean = () =>
    false;

  constructor(
    world: ToolWorld,
    {
      json = false,
      eventStore,
    }: { readonly json?: boolean; readonly eventStore?: EventStore } = {},
  ) {
    this.server = http.createServer((request, response) => {
      const { method = "", headers, url = "" } = request;
      this.requests.push({ method, headers, url });
      if (this.intercept(request, response)) return;
      void this.#serve(world, json, eventStore, request, response);
    });
  }

  async #serve(
    world: ToolWorld,
    json: boolean,
    eventStore: EventStore | undefined,
    request: http.IncomingMessage,
    response: http.ServerResponse,
  ): Promise<void> {
    const id = request.headers["mcp-session-id"];
    const known = typeof id === "string" ? this.sessions.get(id) : undefined;
    if (known !== undefined) return known.handleRequest(request, response);
    if (id !== undefined) {
      response.writeHead(404, { "content-type": "application/json" });
      response.end('{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"no session"}}');
      return;
    }
    const transport: StreamableHTTPServerTransport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      enableJsonResponse: json,
      ...(eventStore !== undefined && { eventStore }),
      onsessioninitialized: (session) => {
        this.sessions.set(session, transport);
      },
      onsessionclosed: (session) => {
        this.sessions.delete(session);
      },
    });
    await world.createServer().connect(transport);
    await transport.handleRequest(request, response);
  }
}

/** An SDK server of HTTP+SSE. */
export class SseUpstream {
  readonly server: http.Server;
  readonly sessions = new Map<string, SSEServerTransport>();
  readonly requests: {
    readonly method: string;
    readonly headers: http.IncomingHttpHeaders;
    readonly url: string;
  }[] = [];
  intercept: (request: http.IncomingMessage, response: http.ServerResponse) => boolean = () =>
    false;

  constructor(world: ToolWorld) {
    this.server = http.createServer((request, response) => {
      const { method = "", headers, url = "" } = request;
      this.requests.push({ method, headers, url });
      if (this.intercept(request, response)) return;
      void this.#serve(world, request, response);
    });
  }

  async #serve(
    world: ToolWorld,
    request: http.IncomingMessage,
    response: http.ServerResponse,
  ): Promise<void> {
    if (request.method === "GET") {
      const transport = new SSEServerTransport("/base/messages", response);
      this.sessions.set(transport.sessionId, transport);
      response.on("close", () => this.sessions.delete(transport.sessionId));
      await world.createServer().connect(transport);
      return;
    }
    const id = new URL(request.url ?? "", "http://upstream").searchParams.get("sessionId") ?? "";
    const transport = this.sessions.get(id);
    if (transport === undefined) {
      response.writeHead(404).end();
      return;
    }
    await transport.handlePostMessage(request, response);
  }
}

/** Stands for Envoy: forwards from a port to a socket, and sets headers. */
export class Front {
  readonly server: http.Server;

  constructor(
    target: () => string,
    change: (headers: http.IncomingHttpHeaders) => http.IncomingHttpHeaders,
    pathOf: (url: string) => string = (url) => url,
  ) {
    this.server = http.createServer((request, response) => {
      const forwarded = http.request(
        {
          socketPath: target(),
          method: request.method ?? "GET",
          path: pathOf(request.url ?? "/"),
          headers: change({ ...request.headers }),
          agent: false,
        },
        (answer) => {
          response.writeHead(answer.statusCode ?? 502, answer.headers);
          response.flushHeaders();
          answer.pipe(response);
          answer.on("close", () => response.destroy());
        },
      );
      forwarded.on("error", () => response.destroy());
      response.on("close", () => forwarded.destroy());
      request.pipe(forwarded);
    });
  }

  url(pathname: string): URL {
    return new URL(`http://127.0.0.1:${portOf(this.server)}${pathname}`);
  }
}

/** One replica: a bridge, with its sockets. */
export class Replica {
  readonly bridge: Bridge;
  readonly clock: FakeClock;
  readonly registry = new Registry();
  readonly log = new CapturedLog();
  readonly defects: unknown[] = [];
  readonly clientsSocket: string;
  readonly serversSocket: string;

  private constructor(folder: string, name: string, options: Partial<BridgeOptions>) {
    this.clock = (options.clock as FakeClock | undefined) ?? new FakeClock();
    this.clientsSocket = path.join(folder, `${name}-clients.sock`);
    this.serversSocket = path.join(folder, `${name}-servers.sock`);
    this.bridge = createBridge({
      gatewaySocket: path.join(folder, "gateway.sock"),
      egressSocket: path.join(folder, "egress.sock"),
      bus: new MemoryBus(),
      clock: this.clock,
      log: this.log.log,
      registry: this.registry,
      random: () => 0,
      onDefect: (error) => this.defects.push(error),
      ...options,
    });
  }

  static async start(
    cleanups: Cleanups,
    folder: string,
    options: Partial<BridgeOptions> = {},
    name = "a",
  ): Promise<Replica> {
    const replica = new Replica(folder, name, options);
    await cleanups.listen(replica.bridge.clients, replica.clientsSocket);
    await cleanups.listen(replica.bridge.servers, replica.serversSocket);
    cleanups.add(async () => {
      const closed = replica.bridge.close();
      replica.clock.advance(BRIDGE_TIMES.goodbye);
      await closed;
    });
    return replica;
  }

  async sessions(side: "clients" | "servers"): Promise<number | undefined> {
    const metric = await this.registry.getSingleMetric("svc_mcp_bridge_sessions")?.get();
    return metric?.values.find(({ labels }) => labels["side"] === side)?.value;
  }
}

/** An SDK client with every capability, and what it was told. */
export function createClient(): { readonly client: Client; readonly told: string[] } {
  const client = new Client(
    { name: "test", version: "1" },
    { capabilities: { sampling: {}, elicitation: {}, roots: { listChanged: true } } },
  );
  const told: string[] = [];
  client.setRequestHandler(CreateMessageRequestSchema, () => ({
    model: "none",
    role: "assistant" as const,
    content: { type: "text" as const, text: "Sampled" },
  }));
  client.setRequestHandler(ElicitRequestSchema, () => ({ action: "decline" as const }));
  client.setRequestHandler(ListRootsRequestSchema, () => ({ roots: [{ uri: "file:///root" }] }));
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => {
    told.push("tools/list_changed");
  });
  return { client, told };
}

/** Calls a tool and returns its text. */
export async function callText(client: Client, name: string, args: object = {}): Promise<string> {
  const { content } = await client.callTool({ name, arguments: { ...args } });
  return (content as { readonly text: string }[])[0]?.text ?? "";
}

export interface RawAnswer {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: string;
}

export interface SocketRequest {
  readonly method?: string;
  readonly headers?: http.OutgoingHttpHeaders;
  readonly body?: string;
}

/** Sends a request to a Unix socket. @returns the answer when its headers have arrived */
export function rawRequest(
  socketPath: string,
  target: string,
  { method = "GET", headers = {}, body }: SocketRequest = {},
): Promise<http.IncomingMessage> {
  return new Promise((resolve, reject) => {
    const request = http.request({ socketPath, path: target, method, headers, agent: false });
    request.on("response", resolve).on("error", reject);
    request.end(body);
  });
}

export async function rawAnswer(
  socketPath: string,
  target: string,
  request: SocketRequest = {},
): Promise<RawAnswer> {
  const answer = await rawRequest(socketPath, target, request);
  answer.setEncoding("utf8");
  let body = "";
  for await (const part of answer) body += part as string;
  return { status: answer.statusCode ?? 0, headers: answer.headers, body };
}

/** Events of an answer, as they come. */
export class RawEvents {
  readonly answer: http.IncomingMessage;
  readonly events: { readonly event: string | undefined; readonly data: string }[] = [];
  comments = 0;
  isEnded = false;

  constructor(answer: http.IncomingMessage) {
    this.answer = answer;
    const parser = createParser({
      onEvent: ({ event, data }) => this.events.push({ event, data }),
      onComment: () => (this.comments += 1),
    });
    answer.setEncoding("utf8");
    answer.on("data", (part: string) => parser.feed(part));
    answer.on("error", () => undefined);
    answer.on("close", () => (this.isEnded = true));
  }

  /** Messages, parsed. */
  get messages(): readonly Record<string, unknown>[] {
    return this.events
      .filter(({ event }) => event === "message")
      .map(({ data }) => JSON.parse(data) as Record<string, unknown>);
  }

  /** Waits for the message with an id. */
  message(id: unknown): Promise<Record<string, unknown>> {
    return until(() => this.messages.find((message) => message["id"] === id), {
      what: `the message ${String(id)}`,
    });
  }
}

/** A server whose requests wait for the test's answers. */
export class ScriptedServer {
  readonly server: http.Server;
  readonly #arrivals: ScriptedRequest[] = [];

  constructor() {
    this.server = http.createServer((request, response) => {
      const parts: Buffer[] = [];
      request.on("data", (part: Buffer) => parts.push(part));
      request.on("end", () => {
        const body = Buffer.concat(parts).toString();
        this.#arrivals.push({ request, response, body, method: request.method ?? "" });
      });
    });
  }

  /** The next request that satisfies the condition. */
  async next(
    isWanted: (arrival: ScriptedRequest) => boolean = () => true,
  ): Promise<ScriptedRequest> {
    return until(
      () => {
        const at = this.#arrivals.findIndex(isWanted);
        return at < 0 ? undefined : this.#arrivals.splice(at, 1)[0];
      },
      { what: "a request" },
    );
  }

  get waiting(): readonly ScriptedRequest[] {
    return this.#arrivals;
  }
}

export interface ScriptedRequest {
  readonly request: http.IncomingMessage;
  readonly response: http.ServerResponse;
  readonly method: string;
  readonly body: string;
}

export const json = (value: unknown): string =>
  JSON.stringify({ jsonrpc: "2.0", ...(value as object) });

/** Answers with JSON. */
export function answerJson(
  { response }: ScriptedRequest,
  value: unknown,
  { status = 200, headers = {} }: { status?: number; headers?: http.OutgoingHttpHeaders } = {},
): void {
  response.writeHead(status, { ...headers, "content-type": "application/json" }).end(json(value));
}

/** Begins an event stream. @returns a function that sends an event */
export function answerEvents({ response }: ScriptedRequest): (value: unknown, id?: string) => void {
  response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
  return (value, id) =>
    void response.write(`${id === undefined ? "" : `id: ${id}\n`}data: ${json(value)}\n\n`);
}
