/**
 * Decides to which answer each message of a server of the old transport belongs. The old transport
 * has one stream for all of them; Streamable HTTP has one for each POST, and one more (GET) for
 * what belongs to no request.
 *
 * | message | goes to |
 * |---|---|
 * | response | the POST with its request |
 * | progress | the POST whose request has its token |
 * | request of the server | GET, else the latest open POST, else it waits for either |
 * | cancellation of such a request | where the request went |
 * | other notification | GET, or it waits for GET |
 */
import { idKey, type RpcId, type RpcMessage } from "./frame.ts";
import { FrameAnswer } from "./frame-answer.ts";
import type { MessageQueue } from "./message-queue.ts";
import type { MessageSink } from "./message-sink.ts";

/** A request of the client, with what routes its messages. */
export interface RoutedRequest {
  readonly id: RpcId;
  readonly progressToken?: RpcId;
}

interface OpenPost {
  readonly answer: FrameAnswer;
  readonly requests: readonly RoutedRequest[];
}

/** Requests of the server whose way is remembered. */
const MAX_SERVER_REQUESTS = 256;

export class MessageRouter {
  readonly #queue: MessageQueue;
  /** Oldest first. */
  readonly #posts = new Map<MessageSink, OpenPost>();
  readonly #byRequest = new Map<string, MessageSink>();
  readonly #byToken = new Map<string, MessageSink>();
  readonly #serverRequests = new Map<string, MessageSink>();
  #stream: MessageSink | undefined;

  constructor(queue: MessageQueue) {
    this.#queue = queue;
  }

  /** The open GET stream. */
  get stream(): MessageSink | undefined {
    return this.#stream;
  }

  get isIdle(): boolean {
    return this.#stream === undefined && this.#posts.size === 0;
  }

  /** Returns the answer to which the response of an open request goes. */
  postOf(id: RpcId): MessageSink | undefined {
    return this.#byRequest.get(idKey(id));
  }

  /** @returns false if one of the requests has the id of an open one */
  addPost(sink: MessageSink, requests: readonly RoutedRequest[]): boolean {
    const keys = requests.map(({ id }) => idKey(id));
    if (new Set(keys).size < keys.length) return false;
    if (keys.some((key) => this.#byRequest.has(key))) return false;
    this.#posts.set(sink, { answer: new FrameAnswer(requests.map(({ id }) => id)), requests });
    for (const key of keys) this.#byRequest.set(key, sink);
    for (const { progressToken } of requests) {
      if (progressToken !== undefined) this.#byToken.set(idKey(progressToken), sink);
    }
    if (this.#stream === undefined) {
      for (const message of this.#queue.take("requests")) sink.deliver(message);
    }
    return true;
  }

  setStream(sink: MessageSink): void {
    this.#stream = sink;
    for (const message of this.#queue.take("all")) sink.deliver(message);
  }

  remove(sink: MessageSink): void {
    if (this.#stream === sink) this.#stream = undefined;
    const post = this.#posts.get(sink);
    if (post === undefined) return;
    this.#posts.delete(sink);
    for (const { id, progressToken } of post.requests) {
      forget(this.#byRequest, id, sink);
      if (progressToken !== undefined) forget(this.#byToken, progressToken, sink);
    }
  }

  /** Ends and removes all. */
  end(problem: string): void {
    const sinks = [...this.#posts.keys(), ...(this.#stream === undefined ? [] : [this.#stream])];
    for (const sink of sinks) {
      this.remove(sink);
      sink.end(problem);
    }
  }

  /**
   * Delivers or queues a message.
   * @returns the sink that has it; "queued"; "dropped" if it answers no open request; "full" if too
   * many requests of the server wait
   */
  route(message: RpcMessage): MessageSink | "queued" | "dropped" | "full" {
    if (message.kind === "response") return this.#respond(message);
    const sink = this.#wayOf(message);
    if (sink === undefined) {
      const isRequest = message.kind === "request";
      return this.#queue.add({ text: message.text }, isRequest) ? "queued" : "full";
    }
    if (message.kind === "request") this.#remember(message.id, sink);
    sink.deliver({ text: message.text });
    return sink;
  }

  #respond(message: Extract<RpcMessage, { kind: "response" }>): MessageSink | "dropped" {
    const { id, text, failed } = message;
    const sink = id === undefined ? undefined : this.#byRequest.get(idKey(id));
    const post = sink && this.#posts.get(sink);
    if (sink === undefined || post === undefined || id === undefined) return "dropped";
    post.answer.note(message);
    forget(this.#byRequest, id, sink);
    if (post.answer.open.length === 0) this.remove(sink);
    sink.deliver({ text, answers: id, failed });
    return sink;
  }

  #wayOf(message: Exclude<RpcMessage, { kind: "response" }>): MessageSink | undefined {
    if (message.kind === "request") return this.#stream ?? [...this.#posts.keys()].at(-1);
    const { progressToken, requestId } = message;
    if (progressToken !== undefined) {
      const sink = this.#byToken.get(idKey(progressToken));
      if (sink !== undefined) return sink;
    }
    if (requestId !== undefined) {
      const sink = this.#serverRequests.get(idKey(requestId));
      if (sink !== undefined && (sink === this.#stream || this.#posts.has(sink))) return sink;
    }
    return this.#stream;
  }

  #remember(id: RpcId, sink: MessageSink): void {
    const key = idKey(id);
    this.#serverRequests.delete(key);
    this.#serverRequests.set(key, sink);
    const [oldest] = this.#serverRequests.keys();
    if (this.#serverRequests.size > MAX_SERVER_REQUESTS && oldest !== undefined) {
      this.#serverRequests.delete(oldest);
    }
  }
}

function forget(table: Map<string, MessageSink>, id: RpcId, sink: MessageSink): void {
  const key = idKey(id);
  if (table.get(key) === sink) table.delete(key);
}
