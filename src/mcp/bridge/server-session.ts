/**
 * A session with an upstream of the old transport: it holds the upstream's stream, and routes what
 * comes over it.
 */
import type http from "node:http";
import { readEvents } from "./event-reader.ts";
import { UnreadableFrame, readFrame, type RpcFrame } from "./frame.ts";
import { type HeaderTable, mediaType } from "./headers.ts";
import { MessageQueue } from "./message-queue.ts";
import { MessageRouter } from "./message-router.ts";
import type { MessageSink } from "./message-sink.ts";
import type { BridgeContext } from "./options.ts";
import type { Attached, Attachment, SessionHandle } from "./session-handle.ts";
import { discard, type UnixCaller } from "./unix-caller.ts";
import { EndpointError, resolveEndpoint } from "./upstream-endpoint.ts";

export interface ServerSessionOptions {
  readonly id: string;
  readonly owner: string;
  /** Names the upstream: a request for another one does not find the session. */
  readonly upstream: string;
  readonly egress: UnixCaller;
  /** Host, path and query of the upstream's stream. */
  readonly host: string;
  readonly target: string;
  readonly onEnd: () => void;
}

/** Error for an upstream whose stream cannot be opened; its message is for clients. */
export class UpstreamStreamError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.name = "UpstreamStreamError";
    this.status = status;
  }
}

export class ServerSession implements SessionHandle {
  readonly id: string;
  readonly owner: string;
  readonly upstream: string;
  readonly #context: BridgeContext;
  readonly #options: ServerSessionOptions;
  readonly #router: MessageRouter;
  readonly #stream = new AbortController();
  #endpoint = "";
  #cancelIdle: (() => void) | undefined;
  #ended = false;

  constructor(context: BridgeContext, options: ServerSessionOptions) {
    this.id = options.id;
    this.owner = options.owner;
    this.upstream = options.upstream;
    this.#context = context;
    this.#options = options;
    this.#router = new MessageRouter(
      new MessageQueue(context.limits, () => context.metrics.dropped.inc({ side: "servers" })),
    );
  }

  get isEnded(): boolean {
    return this.#ended;
  }

  /**
   * Opens the upstream's stream, and waits for its `endpoint` event.
   * @param headers of the upstream request; they contain its credential
   * @throws UpstreamStreamError
   */
  async open(headers: HeaderTable): Promise<void> {
    const { clock, times } = this.#context;
    const endpoint = Promise.withResolvers<void>();
    const cancel = clock.after(times.endpoint, () => {
      endpoint.reject(
        new UpstreamStreamError(504, "The MCP server sent no endpoint event in time."),
      );
    });
    this.#connect(headers, endpoint).catch((error: unknown) => {
      if (!(error instanceof UpstreamStreamError)) this.#context.onDefect(error);
      endpoint.reject(error);
    });
    try {
      await endpoint.promise;
    } catch (error) {
      this.end("The MCP server's stream could not be opened.");
      throw error;
    } finally {
      cancel();
    }
    this.#touch();
  }

  async attach(attachment: Attachment, sink: MessageSink): Promise<Attached> {
    if (this.#ended) return { kind: "unknown" };
    if (attachment.what === "post") {
      const { requests } = attachment;
      if (requests.length > 0 && !this.#router.addPost(sink, requests)) {
        return { kind: "conflict" };
      }
    } else {
      for (let other = this.#router.stream; other !== undefined; other = this.#router.stream) {
        if (await other.isAlive()) return { kind: "conflict" };
        this.#router.remove(other);
      }
      if (this.#ended) return { kind: "unknown" };
      this.#router.setStream(sink);
    }
    this.#touch();
    return { kind: "attached", endpoint: this.#endpoint };
  }

  detach(sink: MessageSink): void {
    this.#router.remove(sink);
    this.#touch();
  }

  delete(): Promise<void> {
    this.end("The session was deleted.");
    return Promise.resolve();
  }

  /** Ends the upstream's stream, and all answers with an error. */
  end(problem: string): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#context.log.debug({ problem }, "a session with an MCP server of HTTP+SSE ended");
    this.#cancelIdle?.();
    this.#stream.abort(new Error("the session ended"));
    this.#router.end(problem);
    this.#options.onEnd();
  }

  async #connect(headers: HeaderTable, endpoint: PromiseWithResolvers<void>): Promise<void> {
    const { egress, target } = this.#options;
    let answer: http.IncomingMessage;
    try {
      answer = await egress.call({
        method: "GET",
        path: target,
        headers: { ...headers, accept: ["text/event-stream"], "accept-encoding": ["identity"] },
        signal: this.#stream.signal,
      });
    } catch {
      throw new UpstreamStreamError(502, "The MCP server cannot be reached.");
    }
    const status = answer.statusCode ?? 502;
    if (status !== 200 || mediaType(answer) !== "text/event-stream") {
      discard(answer);
      const problem = `The MCP server answered ${status} instead of an event stream.`;
      throw new UpstreamStreamError(status >= 400 ? status : 502, problem);
    }
    await readEvents(answer, {
      maxEventBytes: this.#context.limits.serverMessageBytes,
      onDefect: this.#context.onDefect,
      onEvent: ({ event, data }) => {
        if (event === "endpoint") this.#setEndpoint(data, endpoint);
        else if (event === undefined || event === "message") this.#receive(data, answer);
      },
    });
    endpoint.reject(new UpstreamStreamError(502, "The MCP server ended its stream."));
    this.end("The MCP server ended its stream.");
  }

  #setEndpoint(data: string, endpoint: PromiseWithResolvers<void>): void {
    if (this.#endpoint !== "") return;
    try {
      this.#endpoint = resolveEndpoint(data, this.#options.host, this.#options.target);
      endpoint.resolve();
    } catch (error) {
      if (!(error instanceof EndpointError)) throw error;
      endpoint.reject(new UpstreamStreamError(502, error.message));
    }
  }

  #receive(text: string, source: http.IncomingMessage): void {
    let frame: RpcFrame;
    try {
      frame = readFrame(Buffer.from(text));
    } catch (error) {
      if (!(error instanceof UnreadableFrame)) throw error;
      this.#context.metrics.dropped.inc({ side: "servers" });
      return;
    }
    for (const message of frame.messages) {
      const way = this.#router.route(message);
      if (way === "dropped") this.#context.metrics.dropped.inc({ side: "servers" });
      else if (way === "full") this.end("Too many requests of the MCP server have no answer.");
      else if (way !== "queued") way.holdBack(source);
    }
    this.#touch();
  }

  /** A session that nobody has open ends after a while. */
  #touch(): void {
    this.#cancelIdle?.();
    this.#cancelIdle = undefined;
    if (this.#ended || !this.#router.isIdle) return;
    const { clock, times } = this.#context;
    this.#cancelIdle = clock.after(times.idle, () => this.end("The session was idle."));
  }
}
