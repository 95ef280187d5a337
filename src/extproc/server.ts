/**
 * Serves Envoy's ext_proc on a Unix socket: one {@link Processor} is made for each HTTP request and is told its phases.
 */
import type { GrpcStream, StreamListener } from "./h2/connection.ts";
import { serveStreams, type StreamServer } from "./h2/serve.ts";
import { decodePhase } from "./wire/decode.ts";
import { encodeContinue, encodeImmediate, encodeUnchanged } from "./wire/encode.ts";
import type { ContinueReply, ImmediateReply, Phase, PhaseKind } from "./wire/messages.ts";

/** The other end of one HTTP request. Every phase wants exactly one answer, in order. */
export interface Exchange {
  /** Nothing changes. */
  pass(phase: PhaseKind): void;
  proceed(phase: PhaseKind, reply: ContinueReply): void;
  /** Ends the request here; no phase follows. */
  respond(reply: ImmediateReply): void;
  /** Gives up: Envoy answers 500 (the filter fails closed). */
  fail(): void;
}

export interface Processor {
  phase(phase: Phase): void;
  /** The request is over: completed, or reset by either side. Called once, last. */
  closed(): void;
}

export type ProcessorFactory = (exchange: Exchange) => Processor;

/** gRPC status INTERNAL: makes Envoy's filter fail closed. */
const GRPC_INTERNAL = 13;

class StreamExchange implements Exchange {
  readonly #stream: GrpcStream;

  constructor(stream: GrpcStream) {
    this.#stream = stream;
  }

  pass(phase: PhaseKind): void {
    this.#stream.send(encodeUnchanged(phase));
  }

  proceed(phase: PhaseKind, reply: ContinueReply): void {
    this.#stream.send(encodeContinue(phase, reply));
  }

  respond(reply: ImmediateReply): void {
    this.#stream.send(encodeImmediate(reply));
  }

  fail(): void {
    this.#stream.fail(GRPC_INTERNAL);
  }
}

export interface ExtProcServerOptions {
  /** Path of the Unix socket; a stale one is replaced. */
  readonly path: string;
  readonly createProcessor: ProcessorFactory;
  /** Largest message from Envoy, bytes: the request body limit and some room. */
  readonly maxMessageBytes: number;
  /** A processor threw: a defect of ours. The request fails closed. */
  readonly onError: (error: unknown) => void;
}

export function serveExtProc(options: ExtProcServerOptions): Promise<StreamServer> {
  const onStream = (stream: GrpcStream): StreamListener => {
    const exchange = new StreamExchange(stream);
    const processor = options.createProcessor(exchange);
    const guarded = (action: () => void): void => {
      try {
        action();
      } catch (error) {
        options.onError(error);
        exchange.fail();
      }
    };
    return {
      message: (bytes) => guarded(() => processor.phase(decodePhase(bytes))),
      end: () => guarded(() => processor.closed()),
      reset: () => guarded(() => processor.closed()),
    };
  };
  return serveStreams({ path: options.path, onStream, maxMessageBytes: options.maxMessageBytes });
}
