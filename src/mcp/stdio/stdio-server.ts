/**
 * A Streamable HTTP server on a Unix socket, in front of a program that speaks the transport stdio.
 * Envoy has judged each request by then, and forwards exactly the bytes that were judged.
 */
import { randomBytes } from "node:crypto";
import { rm } from "node:fs/promises";
import http from "node:http";
import type { Clock } from "../../platform/clock.ts";
import type { Logger } from "../../platform/log.ts";
import { UnreadableFrame, readFrame, type RpcFrame } from "../bridge/frame.ts";
import { type BridgeLimits, type BridgeTimes } from "../bridge/limits.ts";
import { PostAnswer, StreamAnswer } from "../bridge/post-answer.ts";
import { refuse, RpcCode } from "../bridge/rpc-error.ts";
import { isObject } from "../protocol/frame.ts";
import { parseMessage } from "../bridge/frame.ts";
import { McpHeader, STATELESS_REVISION, VERSION_META } from "../protocol/names.ts";
import { type ServerProgram } from "./child-server.ts";
import { ChildSession } from "./child-session.ts";

export interface StdioServerOptions {
  /** Path of the Unix socket. */
  readonly socket: string;
  /** Path of the endpoint. */
  readonly path: string;
  readonly program: ServerProgram;
  /** Maximum number of child processes. */
  readonly maxSessions: number;
  readonly limits: BridgeLimits;
  readonly times: BridgeTimes;
  readonly clock: Clock;
  readonly log: Logger;
  readonly onDefect: (error: unknown) => void;
}

export interface StdioServer {
  /** Ends all child processes. */
  close(): Promise<void>;
}

export async function serveStdio(options: StdioServerOptions): Promise<StdioServer> {
  const endpoint = new StdioEndpoint(options);
  const server = http.createServer((request, response) => {
    request.on("error", () => undefined);
    response.on("error", () => undefined);
    endpoint.serve(request, response).catch((error: unknown) => {
      options.onDefect(error);
      response.destroy();
    });
  });
  // Streams and uploads have no limit of time here: Envoy is the only client.
  server.requestTimeout = 0;
  server.headersTimeout = 0;
  server.keepAliveTimeout = 0;
  await rm(options.socket, { force: true });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.socket, resolve);
  });
  return {
    close: async () => {
      server.close();
      await endpoint.close();
      server.closeAllConnections();
    },
  };
}

const UNKNOWN = "The session does not exist: send initialize again.";
const BUSY = "The MCP server does not read its messages.";
const FULL = "There are too many sessions of this MCP server.";

class StdioEndpoint {
  readonly #options: StdioServerOptions;
  readonly #sessions = new Map<string, ChildSession>();
  /** Child processes for requests without a session. */
  readonly #shared = new Set<ChildSession>();

  constructor(options: StdioServerOptions) {
    this.#options = options;
  }

  async close(): Promise<void> {
    const all = [...this.#sessions.values(), ...this.#shared];
    await Promise.all(all.map(async (session) => session.end("The sidecar is closing.")));
  }

  async serve(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    if (request.url?.split("?", 1)[0] !== this.#options.path)
      return refuse(response, 404, "There is no such path.");
    switch (request.method) {
      case "POST":
        return this.#post(request, response);
      case "GET":
        return this.#stream(request, response);
      case "DELETE":
        return this.#delete(request, response);
      default:
        response.setHeader("allow", "GET, POST, DELETE");
        return refuse(response, 405, "Use GET, POST or DELETE here.");
    }
  }

  async #post(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const { clientFrameBytes } = this.#options.limits;
    const body = await readBody(request, clientFrameBytes);
    if (body === undefined) {
      response.setHeader("connection", "close");
      return refuse(response, 413, `A message has at most ${clientFrameBytes} bytes.`);
    }
    let frame: RpcFrame;
    try {
      frame = readFrame(body);
    } catch (error) {
      if (error instanceof UnreadableFrame) return refuse(response, 400, error.message);
      throw error;
    }
    const [first] = frame.messages;
    const isInitialize =
      frame.messages.length === 1 && first?.kind === "request" && first.method === "initialize";
    const named = request.headers[McpHeader.session];
    if (isInitialize && named === undefined) return this.#initialize(frame, response);
    if (named === undefined && isStateless(frame)) return this.#withoutSession(frame, response);
    const id = frame.requests[0] ?? null;
    if (named === undefined)
      return refuse(response, 400, "Send initialize first.", RpcCode.transport, id);
    const session = this.#sessions.get(String(named));
    if (session === undefined) return refuse(response, 404, UNKNOWN, RpcCode.sessionNotFound, id);
    this.#forward(session, frame, response);
  }

  #initialize(frame: RpcFrame, response: http.ServerResponse): void {
    const session = this.#newSession(true);
    if (session === undefined)
      return refuse(response, 503, FULL, RpcCode.transport, frame.requests[0] ?? null);
    this.#sessions.set(session.id, session);
    this.#forward(session, frame, response, { [McpHeader.session]: session.id });
  }

  #withoutSession(frame: RpcFrame, response: http.ServerResponse): void {
    let session = [...this.#shared].find((one) => one.accepts(frame));
    if (session === undefined) {
      session = this.#newSession(false);
      if (session === undefined)
        return refuse(response, 503, FULL, RpcCode.transport, frame.requests[0] ?? null);
      this.#shared.add(session);
    }
    const own = session;
    // To close the stream is to cancel the request (2026-07-28, section "Cancellation").
    response.on("close", () => {
      for (const requestId of frame.requests) {
        if (response.writableEnded || own.isEnded) return;
        const method = "notifications/cancelled";
        own.send(JSON.stringify({ jsonrpc: "2.0", method, params: { requestId } }));
      }
    });
    this.#forward(own, frame, response);
  }

  #newSession(hasSessions: boolean): ChildSession | undefined {
    const { program, limits, times, clock, log, maxSessions } = this.#options;
    if (this.#sessions.size + this.#shared.size >= maxSessions) return undefined;
    const id = randomBytes(32).toString("base64url");
    const session: ChildSession = new ChildSession({
      id,
      hasSessions,
      program,
      limits,
      times,
      clock,
      log,
      onEnd: () => {
        this.#sessions.delete(id);
        this.#shared.delete(session);
      },
    });
    return session;
  }

  #forward(
    session: ChildSession,
    frame: RpcFrame,
    response: http.ServerResponse,
    headers: http.OutgoingHttpHeaders = {},
  ): void {
    const answer = new PostAnswer(this.#options, {
      response,
      requests: frame.requests,
      headers: () => (session.isEnded ? {} : headers),
    });
    const requests = frame.messages.flatMap((message) =>
      message.kind === "request"
        ? [
            {
              id: message.id,
              ...(message.progressToken !== undefined && { progressToken: message.progressToken }),
            },
          ]
        : [],
    );
    if (requests.length > 0 && !session.addPost(answer, requests))
      return answer.fail(400, "A request with this id is open.", RpcCode.invalidRequest);
    response.on("close", () => session.remove(answer));
    if (!session.send(frame.text)) {
      session.remove(answer);
      return answer.fail(503, BUSY);
    }
    if (requests.length === 0) answer.accept();
  }

  #stream(request: http.IncomingMessage, response: http.ServerResponse): void {
    const session = this.#named(request, response);
    if (session === undefined) return;
    const sink = new StreamAnswer(this.#options, response);
    if (session.hasStream) return sink.fail(409, "The session has an open stream already.");
    sink.start();
    session.setStream(sink);
    response.on("close", () => session.remove(sink));
  }

  async #delete(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const session = this.#named(request, response);
    if (session === undefined) return;
    await session.end("The client has ended the session.");
    response.writeHead(204).end();
  }

  /** Returns the session that a request names; undefined if it was refused. */
  #named(request: http.IncomingMessage, response: http.ServerResponse): ChildSession | undefined {
    const named = request.headers[McpHeader.session];
    // Clients without sessions have no such requests.
    if (named === undefined) {
      response.setHeader("allow", "POST");
      refuse(response, 405, "Name a session in the header mcp-session-id.");
      return undefined;
    }
    const session = this.#sessions.get(String(named));
    if (session === undefined) refuse(response, 404, UNKNOWN, RpcCode.sessionNotFound);
    return session;
  }
}

/** Returns whether a frame is a message of a revision without sessions. */
function isStateless({ messages, text }: RpcFrame): boolean {
  if (messages.length !== 1) return false;
  const params = parseMessage(text)?.["params"];
  const meta = isObject(params) ? params["_meta"] : undefined;
  const version = isObject(meta) ? meta[VERSION_META] : undefined;
  return typeof version === "string" && version >= STATELESS_REVISION;
}

async function readBody(
  request: http.IncomingMessage,
  maxBytes: number,
): Promise<Buffer | undefined> {
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    length += part.length;
    if (length > maxBytes) return undefined;
    parts.push(part);
  }
  return Buffer.concat(parts);
}
