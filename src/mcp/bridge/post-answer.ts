/**
 * The answer to a POST with requests: JSON if the first message is the only response, otherwise an
 * event stream. It becomes a stream too when the response takes long, so that it can be kept open.
 */
import type http from "node:http";
import type { Readable } from "node:stream";
import { EventWriter, type EventWriterOptions } from "./event-writer.ts";
import type { RpcId } from "./frame.ts";
import { FrameAnswer } from "./frame-answer.ts";
import type { ReadSink, SinkMessage } from "./message-sink.ts";
import { refuse, RpcCode, rpcError } from "./rpc-error.ts";

export interface PostAnswerOptions {
  readonly response: http.ServerResponse;
  readonly requests: readonly RpcId[];
  /** Further headers, read when the answer begins. */
  readonly headers?: () => http.OutgoingHttpHeaders;
}

export class PostAnswer implements ReadSink {
  readonly #context: EventWriterOptions;
  readonly #options: PostAnswerOptions;
  readonly #answer: FrameAnswer;
  #cancelTimer = (): void => undefined;
  #writer: EventWriter | undefined;

  constructor(context: EventWriterOptions, options: PostAnswerOptions) {
    this.#context = context;
    this.#options = options;
    this.#answer = new FrameAnswer(options.requests);
    if (options.requests.length > 0) {
      this.#cancelTimer = context.clock.after(context.times.keepAlive, () => void this.#stream());
    }
    options.response.on("close", () => this.#cancelTimer());
  }

  deliver({ text, answers }: SinkMessage): void {
    const { response, requests, headers } = this.#options;
    if (response.destroyed || response.writableEnded) return;
    if (answers !== undefined) this.#answer.settleOne(answers);
    const isLast = this.#answer.open.length === 0;
    if (isLast && this.#writer === undefined && requests.length === 1) {
      this.#cancelTimer();
      response
        .writeHead(200, {
          ...headers?.(),
          "content-type": "application/json",
          "content-length": Buffer.byteLength(text),
        })
        .end(text);
      return;
    }
    const writer = this.#stream();
    writer.event("message", text);
    if (isLast) writer.end();
  }

  holdBack(source: Readable): void {
    this.#writer?.holdBack(source);
  }

  unblocked(): Promise<void> {
    return this.#writer?.unblocked() ?? Promise.resolve();
  }

  end(problem: string): void {
    this.fail(502, problem);
  }

  /** Answers the open requests with an error. @param status if the answer has not begun */
  fail(status: number, problem: string, code: number = RpcCode.transport): void {
    this.#cancelTimer();
    const open = this.#answer.settle();
    if (this.#writer === undefined) {
      refuse(this.#options.response, status, problem, code, open[0] ?? null);
      return;
    }
    for (const id of open) this.#writer.event("message", rpcError(id, code, problem));
    this.#writer.end();
  }

  /** The upstream has accepted a frame without requests. */
  accept(): void {
    const { response } = this.#options;
    if (!response.destroyed && !response.headersSent) response.writeHead(202).end();
  }

  isAlive(): Promise<boolean> {
    return Promise.resolve(!this.#options.response.destroyed);
  }

  #stream(): EventWriter {
    this.#cancelTimer();
    const { response, headers } = this.#options;
    return (this.#writer ??= new EventWriter(response, this.#context, headers?.()));
  }
}

/** The answer to GET: it begins when the session has accepted it. */
export class StreamAnswer implements ReadSink {
  readonly #context: EventWriterOptions;
  readonly #response: http.ServerResponse;
  #writer: EventWriter | undefined;

  constructor(context: EventWriterOptions, response: http.ServerResponse) {
    this.#context = context;
    this.#response = response;
  }

  start(): void {
    if (!this.#response.destroyed) this.#stream();
  }

  fail(status: number, problem: string, code: number = RpcCode.transport): void {
    refuse(this.#response, status, problem, code);
  }

  deliver({ text }: SinkMessage): void {
    if (!this.#response.destroyed) this.#stream().event("message", text);
  }

  holdBack(source: Readable): void {
    this.#writer?.holdBack(source);
  }

  unblocked(): Promise<void> {
    return this.#writer?.unblocked() ?? Promise.resolve();
  }

  end(): void {
    this.#writer?.end();
  }

  isAlive(): Promise<boolean> {
    return Promise.resolve(!this.#response.destroyed);
  }

  #stream(): EventWriter {
    return (this.#writer ??= new EventWriter(this.#response, this.#context));
  }
}
