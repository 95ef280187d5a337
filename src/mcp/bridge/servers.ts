/**
 * Serves as a Streamable HTTP server for an upstream that speaks only the old transport (HTTP+SSE,
 * revision 2024-11-05). Envoy sends each request with the path of the upstream's stream, the
 * credential, and the name of the upstream's cluster.
 */
import { createHash } from "node:crypto";
import http from "node:http";
import { UnreadableFrame, readFrame, type RpcFrame, type RpcId } from "./frame.ts";
import {
  type HeaderTable,
  onlyValue,
  senderHeaders,
  traceHeaders,
  withoutPrefix,
} from "./headers.ts";
import type { ReadSink, SinkMessage } from "./message-sink.ts";
import { BridgeHeader, INTERNAL_PREFIX } from "./names.ts";
import type { BridgeContext } from "./options.ts";
import { PostAnswer, StreamAnswer } from "./post-answer.ts";
import { holderName, RemoteSession, SessionHolder } from "./remote-session.ts";
import { refuse, RpcCode } from "./rpc-error.ts";
import { ServerSession, UpstreamStreamError } from "./server-session.ts";
import type { Attached, SessionHandle } from "./session-handle.ts";
import { isSessionId, newSessionId, SessionTable } from "./session-table.ts";
import { discard, MAX_HEADER_BYTES, readBody, UnixCaller } from "./unix-caller.ts";
import { AbortGroup } from "./waiting.ts";

/** A request, with the upstream that it is for. */
interface UpstreamRequest {
  readonly request: http.IncomingMessage;
  readonly response: http.ServerResponse;
  readonly host: string;
  /** Path and query of the upstream's stream. */
  readonly target: string;
  readonly owner: string;
  /** Digest of all that names the upstream: its URL may contain a credential. */
  readonly upstream: string;
  /** Headers for the upstream; they contain its credential. */
  readonly headers: HeaderTable;
}

export class ServerBridge {
  readonly #context: BridgeContext;
  readonly #egress: UnixCaller;
  readonly #sessions: SessionTable<ServerSession>;
  readonly #posts: AbortGroup;

  constructor(context: BridgeContext, egressSocket: string) {
    this.#context = context;
    this.#egress = new UnixCaller(egressSocket);
    this.#sessions = new SessionTable("servers", context.limits, context.metrics);
    this.#posts = new AbortGroup(context.clock);
  }

  createServer(): http.Server {
    const server = http.createServer({ maxHeaderSize: MAX_HEADER_BYTES }, (request, response) => {
      request.on("error", () => undefined);
      response.on("error", () => undefined);
      this.#serve(request, response).catch((error: unknown) => {
        this.#context.onDefect(error);
        response.destroy();
      });
    });
    // Envoy enforces the timeouts.
    server.requestTimeout = 0;
    server.headersTimeout = 0;
    server.keepAliveTimeout = 120_000;
    return server;
  }

  /** Ends all sessions. */
  close(): Promise<void> {
    for (const session of this.#sessions.all()) session.end("The gateway is closing.");
    this.#posts.abort();
    this.#egress.close();
    return Promise.resolve();
  }

  async #serve(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const egress = onlyValue(request, BridgeHeader.egress);
    const owner = onlyValue(request, BridgeHeader.owner);
    const { host } = request.headers;
    const target = request.url ?? "";
    if (!egress || !owner || !host || !target.startsWith("/")) {
      return refuse(response, 421, "The request names no upstream and owner.");
    }
    const call: UpstreamRequest = {
      request,
      response,
      host,
      target,
      owner,
      upstream: digest(`${egress} ${host} ${target}`),
      headers: upstreamHeaders(request, egress),
    };
    switch (request.method) {
      case "POST":
        return this.#post(call);
      case "GET":
        return this.#stream(call);
      case "DELETE":
        return this.#delete(call);
      default:
        response.setHeader("allow", "GET, POST, DELETE");
        return refuse(response, 405, "Use GET, POST or DELETE here.");
    }
  }

  async #post(call: UpstreamRequest): Promise<void> {
    const { request, response } = call;
    const { clientFrameBytes } = this.#context.limits;
    const body = await readBody(request, clientFrameBytes);
    if (body === undefined) {
      response.setHeader("connection", "close");
      return refuse(response, 413, `A frame has at most ${clientFrameBytes} bytes.`);
    }
    let frame: RpcFrame;
    try {
      frame = readFrame(body);
    } catch (error) {
      if (error instanceof UnreadableFrame) return refuse(response, 400, error.message);
      throw error;
    }
    const session = this.#sessionOf(call);
    if (session === "unknown") return unknown(response, frame);
    if (session !== undefined) return this.#forward(call, frame, session);
    const [first] = frame.messages;
    if (frame.messages.length === 1 && first?.kind === "request" && first.method === "initialize")
      return this.#initialize(call, frame);
    // A client of a later revision takes this for an older server, and sends `initialize`.
    refuse(
      response,
      400,
      "The MCP server has sessions only: send initialize first.",
      RpcCode.transport,
      frame.requests[0] ?? null,
    );
  }

  async #initialize(call: UpstreamRequest, frame: RpcFrame): Promise<void> {
    const { response, owner, upstream, host, target } = call;
    const full = this.#sessions.full(owner);
    if (full === "owner") return refuse(response, 429, "There are too many sessions of this key.");
    if (full === "all") return refuse(response, 503, "The gateway has too many sessions.");
    const id = newSessionId();
    let subscription: { close(): void } | undefined;
    const session = new ServerSession(this.#context, {
      id,
      owner,
      upstream,
      egress: this.#egress,
      host,
      target,
      onEnd: () => {
        this.#sessions.delete(session);
        subscription?.close();
      },
    });
    this.#sessions.add(session);
    let isInitialized = false;
    response.on("close", () => {
      // Nobody has learnt the id.
      if (!isInitialized) session.end("The client has gone.");
    });
    try {
      await session.open(call.headers);
    } catch (error) {
      if (!(error instanceof UpstreamStreamError)) throw error;
      const requestId = frame.requests[0] ?? null;
      return refuse(response, error.status, error.message, RpcCode.transport, requestId);
    }
    const holder = new SessionHolder(this.#context, session);
    subscription = await this.#context.bus.open(holderName(id), (text) => holder.serve(text));
    if (session.isEnded) {
      subscription.close();
      return refuse(response, 502, "The MCP server ended its stream.", RpcCode.transport);
    }
    const answer = new PostAnswer(this.#context, {
      response,
      requests: frame.requests,
      headers: () => (session.isEnded ? {} : { "mcp-session-id": id }),
    });
    const watched = watching(answer, (message) => {
      if (message.answers === undefined) return;
      isInitialized = message.failed !== true;
      if (!isInitialized) session.end("The MCP server refused to initialize.");
    });
    await this.#send(call, frame, session, answer, watched);
  }

  /** Sends a frame of a session to its upstream. */
  async #forward(call: UpstreamRequest, frame: RpcFrame, session: SessionHandle): Promise<void> {
    const { response } = call;
    const answer = new PostAnswer(this.#context, { response, requests: frame.requests });
    await this.#send(call, frame, session, answer, answer);
  }

  async #send(
    call: UpstreamRequest,
    frame: RpcFrame,
    session: SessionHandle,
    answer: PostAnswer,
    sink: ReadSink,
  ): Promise<void> {
    const { response } = call;
    const requests = frame.messages.flatMap((message) =>
      message.kind === "request" ? [{ id: message.id, ...tokenOf(message.progressToken) }] : [],
    );
    const attached = await session.attach({ what: "post", requests }, sink);
    if (attached.kind !== "attached") return failed(answer, attached);
    response.on("close", () => session.detach(sink));
    if (response.destroyed) return session.detach(sink);
    const status = await this.#postUpstream(call, frame, attached.endpoint);
    if (status >= 200 && status < 300) {
      // The responses come over the upstream's stream.
      if (frame.requests.length === 0) answer.accept();
      return;
    }
    session.detach(sink);
    if (status === 404) await session.delete();
    answer.fail(status >= 400 ? status : 502, upstreamProblem(status));
  }

  /** @returns the status; 504 if it took too long, 502 without an answer */
  async #postUpstream(call: UpstreamRequest, frame: RpcFrame, endpoint: string): Promise<number> {
    const { accepted, oneWay } = this.#context.times;
    let isLate = false;
    try {
      const deadline = frame.requests.length > 0 ? accepted : oneWay;
      return await this.#posts.run(deadline, async (signal) => {
        signal.addEventListener("abort", () => (isLate = true));
        const answer = await this.#egress.call({
          method: "POST",
          path: endpoint,
          headers: {
            ...call.headers,
            ...traceHeaders(call.request),
            "content-type": ["application/json"],
            accept: ["application/json, text/event-stream"],
          },
          body: frame.text,
          signal,
        });
        discard(answer);
        return answer.statusCode ?? 502;
      });
    } catch {
      return isLate ? 504 : 502;
    }
  }

  async #stream(call: UpstreamRequest): Promise<void> {
    const { response } = call;
    const session = this.#sessionOf(call);
    if (session === undefined) return needsSession(response);
    if (session === "unknown") return unknown(response);
    const sink = new StreamAnswer(this.#context, response);
    const attached = await session.attach({ what: "stream" }, sink);
    if (attached.kind !== "attached") return failed(sink, attached);
    sink.start();
    response.on("close", () => session.detach(sink));
    if (response.destroyed) session.detach(sink);
  }

  async #delete(call: UpstreamRequest): Promise<void> {
    const { response } = call;
    const session = this.#sessionOf(call);
    if (session === undefined) return needsSession(response);
    if (session === "unknown") return unknown(response);
    const attached = await session.attach({ what: "post", requests: [] }, NO_SINK);
    if (attached.kind === "unknown") return unknown(response);
    if (attached.kind !== "attached") return refuse(response, 503, UNAVAILABLE, RpcCode.transport);
    await session.delete();
    response.writeHead(204).end();
  }

  /** Returns the session that a request names; undefined if it names none. */
  #sessionOf(call: UpstreamRequest): SessionHandle | "unknown" | undefined {
    const { request, upstream, owner } = call;
    if (request.headers["mcp-session-id"] === undefined) return undefined;
    const id = onlyValue(request, "mcp-session-id");
    if (!isSessionId(id)) return "unknown";
    const session = this.#sessions.get(id);
    if (session === undefined) return new RemoteSession(this.#context, id, { upstream, owner });
    return session.upstream === upstream && session.owner === owner ? session : "unknown";
  }
}

/** For requests that only ask whether a session exists. */
const NO_SINK: ReadSink = {
  deliver: () => undefined,
  holdBack: () => undefined,
  end: () => undefined,
  isAlive: () => Promise.resolve(false),
  unblocked: () => Promise.resolve(),
};

/** Returns a sink that shows each message before it delivers it. */
function watching(sink: ReadSink, see: (message: SinkMessage) => void): ReadSink {
  return {
    deliver: (message) => {
      see(message);
      sink.deliver(message);
    },
    holdBack: (source) => sink.holdBack(source),
    end: (problem) => sink.end(problem),
    isAlive: () => sink.isAlive(),
    unblocked: () => sink.unblocked(),
  };
}

function upstreamHeaders(request: http.IncomingMessage, egress: string): HeaderTable {
  const version = onlyValue(request, "mcp-protocol-version");
  return {
    ...withoutPrefix(senderHeaders(request), INTERNAL_PREFIX),
    ...(version !== undefined && { "mcp-protocol-version": [version] }),
    [BridgeHeader.relay]: [egress],
  };
}

const digest = (text: string): string => createHash("sha256").update(text).digest("base64url");

const tokenOf = (progressToken: RpcId | undefined): { readonly progressToken?: RpcId } =>
  progressToken === undefined ? {} : { progressToken };

const UNKNOWN = "The session does not exist: send initialize again.";
const UNAVAILABLE = "The session's process cannot be reached: try again.";

function unknown(response: http.ServerResponse, frame?: RpcFrame): void {
  refuse(response, 404, UNKNOWN, RpcCode.sessionNotFound, frame?.requests[0] ?? null);
}

function needsSession(response: http.ServerResponse): void {
  refuse(response, 400, "Name a session in the header mcp-session-id.");
}

/** Answers a request that could not be attached to its session. */
function failed(
  answer: PostAnswer | StreamAnswer,
  { kind }: Exclude<Attached, { kind: "attached" }>,
): void {
  if (kind === "unknown") answer.fail(404, UNKNOWN, RpcCode.sessionNotFound);
  else if (kind === "unavailable") answer.fail(503, UNAVAILABLE);
  else if (answer instanceof StreamAnswer) {
    answer.fail(409, "The session has an open stream already.");
  } else answer.fail(400, "A request with this id is open.", RpcCode.invalidRequest);
}

function upstreamProblem(status: number): string {
  if (status === 502) return "The MCP server cannot be reached.";
  if (status === 504) return "The MCP server did not accept the frame in time.";
  return `The MCP server answered ${status} to the frame.`;
}
