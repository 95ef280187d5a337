/**
 * Serves Envoy's ext_proc on a Unix socket. Each HTTP request gets one {@link Processor}, which
 * receives the request's phases.
 *
 * Everything that runs on behalf of a request runs under its guard: a phase, the end of the stream,
 * and every callback that the processor schedules through its {@link Exchange}. An error there is a
 * defect of this program. It fails that request closed, reaches `onDefect` once, and harms no other
 * request.
 */
import type { Clock } from "../../platform/clock.ts";
import type { GrpcStream, StreamListener } from "../grpc/connection.ts";
import { serveStreams, type StreamServer } from "../grpc/serve.ts";
import { RequestGuard } from "./request-guard.ts";
import { decodePhase } from "./decode.ts";
import { encodeContinue, encodeImmediate, encodeUnchanged } from "./encode.ts";
import type { ContinueReply, ImmediateReply, Phase, PhaseKind } from "./messages.ts";

/**
 * Exchange is the processor's handle on one HTTP request. Every phase needs exactly one answer, in
 * order.
 */
export interface Exchange {
  /** Continues without a change. */
  pass(phase: PhaseKind): void;
  proceed(phase: PhaseKind, reply: ContinueReply): void;
  /** Ends the request with our own response; no phase follows. */
  respond(reply: ImmediateReply): void;
  /** Gives up: Envoy answers 500, because the filter fails closed. */
  fail(): void;
  /** Returns `callback` under the request's guard, for an event source that calls it later. */
  guard<A extends readonly unknown[]>(callback: (...args: A) => void): (...args: A) => void;
  /** Calls `callback` under the guard after `ms` milliseconds; the returned function cancels it. */
  after(ms: number, callback: () => void): () => void;
  /** Calls `callback` under the guard with the promise's value. A rejection is a defect. */
  when<T>(promise: Promise<T>, callback: (value: T) => void): void;
  /**
   * Passes the milliseconds of the request's work, including those before this call, to `charge`.
   */
  chargeTo(charge: (ms: number) => void): void;
}

export interface Processor {
  phase(phase: Phase): void;
  /** The request is over: completed, failed, or reset by either side. Called once, last. */
  closed(): void;
}

export type ProcessorFactory = (exchange: Exchange) => Processor;

/** gRPC status INTERNAL: makes Envoy's filter fail closed. */
const GRPC_INTERNAL = 13;

export interface ExtProcServerOptions {
  /** Path of the Unix socket; a stale one is replaced. */
  readonly path: string;
  readonly createProcessor: ProcessorFactory;
  /** Largest message from Envoy, bytes: the request body limit and some room. */
  readonly maxMessageBytes: number;
  readonly clock: Clock;
  /** Receives every error that a processor throws; the request has failed closed by then. */
  readonly onDefect: (error: unknown) => void;
}

export function serveExtProc(options: ExtProcServerOptions): Promise<StreamServer> {
  const { clock, path, maxMessageBytes, onDefect } = options;
  return serveStreams({
    path,
    maxMessageBytes,
    onDefect,
    pingClock: clock,
    onStream: (stream) => new Session(stream, options),
  });
}

/** Session runs one processor under the request's guard. */
class Session implements Exchange, StreamListener {
  readonly #stream: GrpcStream;
  readonly #guard: RequestGuard;
  readonly #onDefect: (error: unknown) => void;
  #processor: Processor | undefined;
  #over = false;

  constructor(stream: GrpcStream, { clock, createProcessor, onDefect }: ExtProcServerOptions) {
    this.#stream = stream;
    this.#onDefect = onDefect;
    this.#guard = new RequestGuard(clock, (error) => {
      onDefect(error);
      this.fail();
    });
    this.#guard.run(() => (this.#processor = createProcessor(this)));
  }

  message(bytes: Buffer): void {
    this.#guard.run(() => this.#processor?.phase(decodePhase(bytes)));
  }

  end(): void {
    this.#close();
  }

  reset(): void {
    this.#close();
  }

  pass(phase: PhaseKind): void {
    this.#stream.send(...encodeUnchanged(phase));
  }

  proceed(phase: PhaseKind, reply: ContinueReply): void {
    this.#stream.send(...encodeContinue(phase, reply));
  }

  respond(reply: ImmediateReply): void {
    this.#stream.send(...encodeImmediate(reply));
  }

  fail(): void {
    this.#stream.fail(GRPC_INTERNAL);
    // The transport reports nothing more about a stream that this side has ended.
    this.#close();
  }

  guard<A extends readonly unknown[]>(callback: (...args: A) => void): (...args: A) => void {
    return this.#guard.guard(callback);
  }

  after(ms: number, callback: () => void): () => void {
    return this.#guard.after(ms, callback);
  }

  when<T>(promise: Promise<T>, callback: (value: T) => void): void {
    this.#guard.when(promise, callback);
  }

  chargeTo(charge: (ms: number) => void): void {
    this.#guard.chargeTo(charge);
  }

  #close(): void {
    if (this.#over) return;
    this.#over = true;
    try {
      this.#processor?.closed();
    } catch (error) {
      this.#onDefect(error);
    }
  }
}
