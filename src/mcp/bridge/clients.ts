/**
 * Serves clients of the old transport (HTTP+SSE, revision 2024-11-05): `GET /ext/mcp/{name}/sse`
 * and `POST /ext/mcp/{name}/message?session={id}`, behind Envoy, which has authenticated them. What
 * they send is sent to the gateway again as Streamable HTTP, where every check applies.
 */
import http from "node:http";
import { UnreadableFrame, readFrame, type RpcFrame } from "./frame.ts";
import {
  type HeaderTable,
  mediaType,
  onlyValue,
  senderHeaders,
  traceHeaders,
  withoutPrefix,
} from "./headers.ts";
import { BridgeHeader } from "./names.ts";
import { BusUnavailable } from "./bus.ts";
import { ClientSession, type TakenStatus } from "./client-session.ts";
import type { BridgeContext } from "./options.ts";
import { refuse, RpcCode } from "./rpc-error.ts";
import { isSessionId, newSessionId, SessionTable } from "./session-table.ts";
import { MAX_HEADER_BYTES, readBody, UnixCaller } from "./unix-caller.ts";
import { pause } from "./waiting.ts";

const PATH = /^(\/ext\/mcp\/[^/?#]+)\/(sse|message)(?:\?([^#]*))?$/;
/** A path prefix that an ingress has removed, and names in this header. */
const PREFIX = /^(?:\/[\w~-][\w.~-]*){1,16}$/;

/** What is sent to the process that holds the session. */
interface CarriedFrame {
  readonly owner: string;
  readonly text: string;
  readonly trace: HeaderTable;
}

export class ClientBridge {
  readonly #context: BridgeContext;
  readonly #gateway: UnixCaller;
  readonly #sessions: SessionTable<ClientSession>;

  constructor(context: BridgeContext, gatewaySocket: string) {
    this.#context = context;
    this.#gateway = new UnixCaller(gatewaySocket);
    this.#sessions = new SessionTable("clients", context.limits, context.metrics);
  }

  createServer(): http.Server {
    const server = http.createServer({ maxHeaderSize: MAX_HEADER_BYTES }, (request, response) => {
      request.on("error", () => undefined);
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
  async close(): Promise<void> {
    const sessions = this.#sessions.all();
    for (const session of sessions) session.end("the gateway is closing");
    const { clock, times } = this.#context;
    const done = new AbortController();
    const deadline = pause(clock, times.goodbye, done.signal);
    await Promise.race([Promise.all(sessions.map(({ ended }) => ended)), deadline]);
    done.abort();
    this.#gateway.close();
  }

  async #serve(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const [, path, endpoint, query] = PATH.exec(request.url ?? "") ?? [];
    const owner = onlyValue(request, BridgeHeader.owner);
    if (path === undefined || owner === undefined || owner === "") {
      return refuse(response, 404, "There is no such path.");
    }
    const method = endpoint === "sse" ? "GET" : "POST";
    if (request.method !== method) {
      response.setHeader("allow", method);
      return refuse(response, 405, `Use ${method} here.`);
    }
    if (endpoint === "sse") await this.#open(request, response, path, owner);
    else await this.#post(request, response, owner, new URLSearchParams(query));
  }

  async #open(
    request: http.IncomingMessage,
    response: http.ServerResponse,
    path: string,
    owner: string,
  ): Promise<void> {
    const full = this.#sessions.full(owner);
    if (full === "owner") return refuse(response, 429, "The key has too many open streams.");
    if (full === "all") return refuse(response, 503, "The gateway has too many open streams.");
    const id = newSessionId();
    const session = new ClientSession(this.#context, {
      id,
      owner,
      response,
      caller: this.#gateway,
      path,
      headers: forwarded(request),
      onEnd: () => {
        this.#sessions.delete(session);
        subscription?.close();
      },
    });
    let subscription: { close(): void } | undefined;
    this.#sessions.add(session);
    subscription = await this.#context.bus.open(busName(id), (message) => {
      const { owner: sender, text, trace } = JSON.parse(message) as CarriedFrame;
      return String(this.#take(session, sender, readFrame(Buffer.from(text)), trace));
    });
    if (this.#sessions.get(id) === undefined) subscription.close();
    // An absolute path, because some clients resolve it against their base URL, not against this.
    else session.start(`${prefixOf(request)}${path}/message?session=${id}`);
  }

  async #post(
    request: http.IncomingMessage,
    response: http.ServerResponse,
    owner: string,
    query: URLSearchParams,
  ): Promise<void> {
    const ids = query.getAll("session");
    const id = ids.length === 1 ? ids[0] : undefined;
    if (!isSessionId(id)) return unknown(response);
    const encoding = request.headers["content-encoding"] ?? "identity";
    if (mediaType(request) !== "application/json" || encoding !== "identity") {
      return refuse(response, 415, "Send application/json without compression.");
    }
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
    const trace = traceHeaders(request);
    const session = this.#sessions.get(id);
    const status =
      session === undefined
        ? await this.#carry(id, { owner, text: frame.text, trace })
        : this.#take(session, owner, frame, trace);
    answer(response, status);
  }

  #take(session: ClientSession, owner: string, frame: RpcFrame, trace: HeaderTable): TakenStatus {
    return session.owner === owner ? session.take(frame, trace) : 404;
  }

  /** Hands a frame to the process that holds its session. */
  async #carry(id: string, frame: CarriedFrame): Promise<number> {
    try {
      const status = await this.#context.bus.send(busName(id), JSON.stringify(frame));
      return status === undefined ? 404 : Number(status);
    } catch (error) {
      if (error instanceof BusUnavailable) return 503;
      throw error;
    }
  }
}

const busName = (id: string): string => `client:${id}`;

const unknown = (response: http.ServerResponse): void =>
  refuse(response, 404, "The session does not exist: open a new stream.", RpcCode.sessionNotFound);

function answer(response: http.ServerResponse, status: number): void {
  if (status === 202) response.writeHead(202, { "content-type": "text/plain" }).end("Accepted");
  else if (status === 404) unknown(response);
  else if (status === 429) refuse(response, 429, "Too many frames are under way.");
  else refuse(response, 503, "The session's process cannot be reached: try again.");
}

/** Headers of the client for the gateway; what Envoy told this bridge is not for the next pass. */
function forwarded(request: http.IncomingMessage): HeaderTable {
  return withoutPrefix(senderHeaders(request), BridgeHeader.owner);
}

function prefixOf(request: http.IncomingMessage): string {
  const prefix = onlyValue(request, "x-forwarded-prefix")?.replace(/\/$/, "") ?? "";
  return PREFIX.test(prefix) ? prefix : "";
}
