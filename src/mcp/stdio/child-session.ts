/**
 * ChildSession is one child process and the HTTP answers that wait for its messages: one session of
 * a client, or the requests of clients without sessions (revision 2026-07-28), as far as their ids
 * differ.
 */
import type { EventWriterOptions } from "../bridge/event-writer.ts";
import { UnreadableFrame, readFrame, type RpcFrame, type RpcMessage } from "../bridge/frame.ts";
import { MessageQueue } from "../bridge/message-queue.ts";
import { MessageRouter, type RoutedRequest } from "../bridge/message-router.ts";
import type { MessageSink } from "../bridge/message-sink.ts";
import { ChildServer, type ChildServerOptions } from "./child-server.ts";
import { subscriptionOf } from "./subscription.ts";

export interface ChildSessionOptions
  extends EventWriterOptions, Pick<ChildServerOptions, "program" | "log"> {
  readonly id: string;
  readonly hasSessions: boolean;
  readonly onEnd: () => void;
}

const GONE = "The MCP server has ended: start a new session.";
const IDLE = "The session was not used for a long time.";

export class ChildSession {
  readonly id: string;
  readonly #options: ChildSessionOptions;
  readonly #child: ChildServer;
  readonly #router: MessageRouter;
  #cancelIdle: (() => void) | undefined;
  #isEnded = false;

  constructor(options: ChildSessionOptions) {
    const { id, program, clock, log, limits } = options;
    this.id = id;
    this.#options = options;
    this.#router = new MessageRouter(
      new MessageQueue(limits, () =>
        log.warn("messages of the MCP server were dropped: no reader"),
      ),
    );
    this.#child = new ChildServer({
      program,
      clock,
      log,
      maxMessageBytes: limits.serverMessageBytes,
      maxUnreadBytes: limits.frameBytesPerSession,
      onMessage: (line) => this.#message(line),
      onEnd: () => void this.end(GONE),
    });
    this.used();
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  get hasStream(): boolean {
    return this.#router.stream !== undefined;
  }

  /** Returns whether requests can be told from those that are open. */
  accepts(frame: RpcFrame): boolean {
    return !this.#isEnded && frame.requests.every((id) => this.#router.postOf(id) === undefined);
  }

  /** The session ends when it has not been used for long. */
  used(): void {
    const { clock, times } = this.#options;
    this.#cancelIdle?.();
    if (this.#isEnded) return;
    this.#cancelIdle = clock.after(times.idle, () => {
      if (this.#router.isIdle) void this.end(IDLE);
      else this.used();
    });
  }

  /** @returns false if a request has the id of an open one */
  addPost(sink: MessageSink, requests: readonly RoutedRequest[]): boolean {
    return this.#router.addPost(sink, requests);
  }

  setStream(sink: MessageSink): void {
    this.#router.setStream(sink);
  }

  remove(sink: MessageSink): void {
    this.#router.remove(sink);
    this.used();
  }

  /** @returns false if the server cannot take it */
  send(text: string): boolean {
    this.used();
    return this.#child.send(text);
  }

  async end(problem: string): Promise<void> {
    if (!this.#isEnded) {
      this.#isEnded = true;
      this.#cancelIdle?.();
      this.#router.end(problem);
      this.#options.onEnd();
    }
    await this.#child.stop();
  }

  #message(line: Buffer): void {
    let messages: readonly RpcMessage[];
    try {
      ({ messages } = readFrame(line));
    } catch (error) {
      if (!(error instanceof UnreadableFrame)) throw error;
      this.#options.log.warn("the MCP server wrote a line that is no message: it is left out");
      return;
    }
    for (const message of messages) this.#route(message);
  }

  #route(message: RpcMessage): void {
    if (!this.#options.hasSessions && message.kind !== "response") return this.#toRequest(message);
    const sink = this.#router.route(message);
    if (sink === "full") void this.end("Too many questions of the MCP server wait.");
    else if (typeof sink === "object") sink.holdBack(this.#child.output);
  }

  /** Without a session, each message belongs to a request, or to nobody. */
  #toRequest(message: Exclude<RpcMessage, { kind: "response" }>): void {
    // Servers ask nothing in this revision.
    if (message.kind === "request") return;
    const subscription = subscriptionOf(message.text);
    const sink = subscription === undefined ? undefined : this.#router.postOf(subscription);
    if (sink !== undefined) sink.deliver({ text: message.text });
    else if (message.progressToken !== undefined) this.#router.route(message);
  }
}
