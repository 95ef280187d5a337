/**
 * One client of the old transport: its stream, and what was sent for it to the gateway as
 * Streamable HTTP.
 */
import type http from "node:http";
import { EventWriter } from "./event-writer.ts";
import { readEvents } from "./event-reader.ts";
import {
  UnreadableFrame,
  parseMessage,
  readFrame,
  type RpcFrame,
  type RpcMessage,
} from "./frame.ts";
import { FrameAnswer } from "./frame-answer.ts";
import { FrameOrder, type OrderedFrame } from "./frame-order.ts";
import { GatewayEndpoint, type GatewayEndpointOptions } from "./gateway-endpoint.ts";
import { type HeaderTable, mediaType } from "./headers.ts";
import type { BridgeContext } from "./options.ts";
import { RpcCode, rpcError } from "./rpc-error.ts";
import { discard, readBody } from "./unix-caller.ts";
import { AbortGroup, pause, retryMs } from "./waiting.ts";

export interface ClientSessionOptions extends GatewayEndpointOptions {
  readonly id: string;
  readonly owner: string;
  readonly response: http.ServerResponse;
  readonly onEnd: () => void;
}

/** Where a stream of events can be resumed. */
interface StreamCursor {
  lastEventId?: string;
  retryMs?: number;
  /** Whether anything came since the last attempt. */
  moved: boolean;
}

/** Attempts to resume a stream that brings nothing new. */
const MOST_RESUMPTIONS = 5;
/** Answers to GET after which it is tried again. */
const PASSING: readonly number[] = [408, 409, 425, 429];

/** Status of the answer to a frame. */
export type TakenStatus = 202 | 404 | 429;

export class ClientSession {
  readonly id: string;
  readonly owner: string;
  readonly #context: BridgeContext;
  readonly #endpoint: GatewayEndpoint;
  readonly #writer: EventWriter;
  readonly #onEnd: () => void;
  readonly #order = new FrameOrder();
  readonly #calls: AbortGroup;
  /** `initialize` outlives the client, so that the session it makes can be deleted. */
  readonly #lastCalls: AbortGroup;
  readonly #ending = new AbortController();
  readonly #farewell = Promise.withResolvers<void>();
  #initialize: "open" | "sent" | "done" = "open";
  #listening = false;
  #saidGoodbye = false;
  #frames = 0;
  #frameBytes = 0;

  constructor(context: BridgeContext, options: ClientSessionOptions) {
    this.id = options.id;
    this.owner = options.owner;
    this.#context = context;
    this.#endpoint = new GatewayEndpoint(options);
    this.#calls = new AbortGroup(context.clock);
    this.#lastCalls = new AbortGroup(context.clock);
    this.#onEnd = options.onEnd;
    this.#writer = new EventWriter(options.response, context);
    options.response.on("close", () => this.end("the client has gone"));
  }

  /** Tells the client where to send its frames. */
  start(endpoint: string): void {
    this.#writer.event("endpoint", endpoint);
  }

  /** Takes a frame of the client. @param trace headers of the request that brought it */
  take(frame: RpcFrame, trace: HeaderTable): TakenStatus {
    if (this.#ending.signal.aborted) return 404;
    const { framesPerSession, frameBytesPerSession } = this.#context.limits;
    const bytes = frame.text.length;
    if (this.#frames >= framesPerSession) return 429;
    if (this.#frameBytes + bytes > frameBytesPerSession) return 429;
    const kind = kindOf(frame);
    if (kind === "initialize" && this.#initialize !== "open") {
      this.#fail(frame.requests, "The session is initialized already: open a new stream.");
      return 202;
    }
    if (kind === "initialize") this.#initialize = "sent";
    this.#frames += 1;
    this.#frameBytes += bytes;
    const answered = this.#order.add({
      kind,
      send: (sent) => this.#send(frame, kind, trace, sent),
    });
    void answered.then(() => this.#answered(frame, bytes));
    return 202;
  }

  #answered(frame: RpcFrame, bytes: number): void {
    this.#frames -= 1;
    this.#frameBytes -= bytes;
    if (frame.messages.some(isInitialized)) this.#listen();
  }

  /** Ends the stream, everything under way, and the session at the gateway. */
  end(reason: string): void {
    if (this.#ending.signal.aborted) return;
    this.#context.log.debug({ reason }, "a session of an MCP client of HTTP+SSE ended");
    this.#ending.abort();
    this.#calls.abort();
    this.#writer.end();
    this.#onEnd();
    if (this.#initialize !== "sent") this.#sayGoodbye();
  }

  /** Fulfilled when the session at the gateway is deleted, or its deletion has failed. */
  get ended(): Promise<void> {
    return this.#farewell.promise;
  }

  #sayGoodbye(): void {
    if (this.#saidGoodbye) return;
    this.#saidGoodbye = true;
    const deleted = this.#endpoint.hasSession
      ? this.#lastCalls.run(this.#context.times.goodbye, async (signal) => {
          const answer = await this.#endpoint.delete({ signal });
          discard(answer);
        })
      : Promise.resolve();
    void deleted.catch(() => undefined).then(this.#farewell.resolve);
  }

  /** Sends a frame, and forwards what answers it. */
  #send(
    frame: RpcFrame,
    kind: OrderedFrame["kind"],
    trace: HeaderTable,
    sent: () => void,
  ): Promise<void> {
    const answer = new FrameAnswer(frame.requests);
    const { initialize, oneWay } = this.#context.times;
    const deadline = { initialize, "one-way": oneWay, request: undefined }[kind];
    const group = kind === "initialize" ? this.#lastCalls : this.#calls;
    void this.#exchange(frame, kind, answer, (call) =>
      group.run(deadline, async (signal) => {
        const response = await this.#endpoint.post(frame.text, trace, { signal, onSent: sent });
        await call(response, signal);
      }),
    )
      .catch(this.#context.onDefect)
      .then(() => this.#exchanged(kind, answer));
    return answer.settled;
  }

  #exchanged(kind: OrderedFrame["kind"], answer: FrameAnswer): void {
    this.#fail(answer.settle(), "The gateway's answer ended before the response.");
    if (kind !== "initialize") return;
    if (this.#initialize === "sent") this.#initialize = "open";
    if (this.#ending.signal.aborted) this.#sayGoodbye();
  }

  async #exchange(
    frame: RpcFrame,
    kind: OrderedFrame["kind"],
    answer: FrameAnswer,
    run: (
      read: (response: http.IncomingMessage, signal: AbortSignal) => Promise<void>,
    ) => Promise<void>,
  ): Promise<void> {
    const cursor: StreamCursor = { moved: false };
    const hadSession = this.#endpoint.hasSession;
    let status = 0;
    const receive = (text: string): void => this.#receive(text, answer, kind === "initialize");
    try {
      await run(async (response) => {
        status = response.statusCode ?? 0;
        const isGood = status >= 200 && status < 300;
        if (kind === "initialize" && isGood) this.#endpoint.setSession(response);
        if (this.#ending.signal.aborted || (isGood && frame.requests.length === 0)) {
          discard(response);
        } else if (isGood && mediaType(response) === "text/event-stream") {
          await this.#readStream(response, cursor, receive);
        } else {
          await this.#readWhole(response, answer, receive);
        }
      });
    } catch {
      this.#fail(answer.settle(), "The gateway did not answer.");
    }
    if (status === 404 && hadSession) this.end("the gateway does not know the session");
    else if (status === 401) this.end("the gateway does not accept the key");
    else if (answer.open.length > 0) await this.#resume(cursor, answer, receive);
  }

  async #readWhole(
    response: http.IncomingMessage,
    answer: FrameAnswer,
    receive: (text: string) => void,
  ): Promise<void> {
    await this.#writer.unblocked();
    const status = response.statusCode ?? 0;
    const body = await readBody(response, this.#context.limits.serverMessageBytes);
    if (body === undefined) {
      response.destroy();
      this.#fail(answer.settle(), "The gateway's answer is incomplete or too large.");
      return;
    }
    const read = tryRead(body);
    const failure = read === undefined ? undefined : errorWithoutId(read, answer);
    if (failure !== undefined) {
      for (const id of answer.settle()) {
        this.#writer.event("message", JSON.stringify({ jsonrpc: "2.0", id, error: failure }));
      }
    } else if (read === undefined) {
      this.#fail(answer.settle(), `The gateway answered with status ${status}.`);
    } else {
      for (const message of read.messages) receive(message.text);
      this.#fail(answer.settle(), `The gateway answered with status ${status} and no response.`);
    }
  }

  async #readStream(
    response: http.IncomingMessage,
    cursor: StreamCursor,
    receive: (text: string) => void,
  ): Promise<void> {
    await readEvents(response, {
      maxEventBytes: this.#context.limits.serverMessageBytes,
      onDefect: this.#context.onDefect,
      onId: (id) => {
        cursor.lastEventId = id;
        cursor.moved = true;
      },
      onRetry: (ms) => (cursor.retryMs = ms),
      onEvent: ({ event, data }) => {
        if (event !== undefined && event !== "message") return;
        cursor.moved = true;
        receive(data);
        this.#writer.holdBack(response);
      },
    });
  }

  /** Continues the stream of a frame that ended before its responses, if its events had ids. */
  async #resume(
    cursor: StreamCursor,
    answer: FrameAnswer,
    receive: (text: string) => void,
  ): Promise<void> {
    const { clock, times, random } = this.#context;
    for (let failures = 0; failures < MOST_RESUMPTIONS; failures += 1) {
      const { lastEventId } = cursor;
      if (lastEventId === undefined || lastEventId === "") return;
      if (cursor.moved) failures = 0;
      cursor.moved = false;
      await pause(clock, retryMs(times, failures, cursor.retryMs, random), this.#ending.signal);
      if (this.#ending.signal.aborted) return;
      const status = await this.#open(lastEventId, async (response) => {
        void answer.settled.then(() => response.destroy());
        await this.#readStream(response, cursor, receive);
      });
      if (answer.open.length === 0) return;
      if (status === 404) return this.end("the gateway does not know the session");
      if (status >= 400 && status < 500 && !PASSING.includes(status)) return;
    }
  }

  /** Forwards what the server sends by itself, until the client has gone. */
  #listen(): void {
    if (this.#listening) return;
    this.#listening = true;
    void this.#keepListening().catch(this.#context.onDefect);
  }

  async #keepListening(): Promise<void> {
    const { clock, times, random } = this.#context;
    const cursor: StreamCursor = { moved: false };
    const receive = (text: string): void => this.#receive(text);
    for (let failures = 0; !this.#ending.signal.aborted; failures += 1) {
      const status = await this.#open(cursor.lastEventId, (response) =>
        this.#readStream(response, cursor, receive),
      );
      if (status === 404) return this.end("the gateway does not know the session");
      if (status === 401 || status === 403) return this.end("the gateway does not accept the key");
      if (status >= 400 && status < 500 && !PASSING.includes(status)) return;
      if (cursor.moved) failures = 0;
      cursor.moved = false;
      await pause(clock, retryMs(times, failures, cursor.retryMs, random), this.#ending.signal);
    }
  }

  /**
   * Opens a stream, and reads it to its end.
   * @returns the status, 0 without an answer, and 406 for an answer that is not a stream
   */
  async #open(
    lastEventId: string | undefined,
    read: (response: http.IncomingMessage) => Promise<void>,
  ): Promise<number> {
    try {
      return await this.#calls.run(undefined, async (signal) => {
        const response = await this.#endpoint.stream(lastEventId || undefined, { signal });
        const status = response.statusCode ?? 0;
        if (status === 200 && mediaType(response) === "text/event-stream") {
          await read(response);
          return status;
        }
        discard(response);
        return status >= 200 && status < 300 ? 406 : status;
      });
    } catch {
      return 0;
    }
  }

  /** Forwards a message of the server to the client. */
  #receive(text: string, answer?: FrameAnswer, initializes = false): void {
    const frame = tryRead(Buffer.from(text));
    if (frame === undefined) {
      this.#context.metrics.dropped.inc({ side: "clients" });
      return;
    }
    for (const message of frame.messages) {
      if (initializes && message.kind === "response") {
        this.#initialize = this.#endpoint.setVersion(message.text) ? "done" : "open";
      }
      // Clients of the old transport need not know batches.
      this.#writer.event("message", message.text);
      answer?.note(message);
    }
  }

  #fail(ids: FrameAnswer["open"], problem: string): void {
    for (const id of ids) {
      this.#writer.event("message", rpcError(id, RpcCode.transport, problem));
    }
  }
}

function kindOf(frame: RpcFrame): OrderedFrame["kind"] {
  const isInitialize = (message: RpcMessage): boolean =>
    message.kind === "request" && message.method === "initialize";
  if (frame.messages.some(isInitialize)) return "initialize";
  return frame.requests.length > 0 ? "request" : "one-way";
}

function isInitialized(message: RpcMessage): boolean {
  return message.kind === "notification" && message.method === "notifications/initialized";
}

function tryRead(body: Buffer): RpcFrame | undefined {
  try {
    return readFrame(body);
  } catch (error) {
    if (error instanceof UnreadableFrame) return undefined;
    throw error;
  }
}

/** Returns the error of an answer to the whole frame: its id is null, or none of the frame's. */
function errorWithoutId({ messages }: RpcFrame, answer: FrameAnswer): unknown {
  const [message] = messages;
  if (messages.length !== 1 || message?.kind !== "response") return undefined;
  if (message.id !== undefined && answer.has(message.id)) return undefined;
  return parseMessage(message.text)?.["error"];
}
