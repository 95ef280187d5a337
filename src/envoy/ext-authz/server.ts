/**
 * Serves Envoy's ext_authz on a Unix socket of its own: one unary call per request. It uses our own
 * transport because of its cost: see docs/performance.md.
 */
import { type GrpcStream, MESSAGE_OFFSET, type StreamListener } from "../grpc/connection.ts";
import { serveStreams, type StreamServer } from "../grpc/serve.ts";
import {
  type AuthzReply,
  type AuthzRequest,
  decodeCheckRequest,
  encodeCheckResponse,
} from "./wire.ts";

/** gRPC status INTERNAL: the filter fails closed. */
const INTERNAL = 13;

export interface AuthorizationOptions {
  /** Path of the Unix socket; a stale one is replaced. */
  readonly path: string;
  /** Maximum size of a request message in bytes: head, and body if it is evaluated. */
  readonly maxMessageBytes: number;
  readonly check: (request: AuthzRequest) => Promise<AuthzReply>;
  /** Receives a defect of ours; the request fails closed. */
  readonly onDefect: (error: unknown) => void;
}

/** Calls under way end with their connections: Envoy refuses their requests. */
export function serveAuthorization({
  path,
  maxMessageBytes,
  check,
  onDefect,
}: AuthorizationOptions): Promise<StreamServer> {
  return serveStreams({
    path,
    maxMessageBytes,
    onDefect,
    onStream: (stream) => new Call(stream, check, onDefect),
  });
}

class Call implements StreamListener {
  readonly #stream: GrpcStream;
  readonly #check: AuthorizationOptions["check"];
  readonly #onDefect: AuthorizationOptions["onDefect"];
  #asked = false;

  constructor(
    stream: GrpcStream,
    check: AuthorizationOptions["check"],
    onDefect: AuthorizationOptions["onDefect"],
  ) {
    this.#stream = stream;
    this.#check = check;
    this.#onDefect = onDefect;
  }

  message(bytes: Buffer): void {
    if (this.#asked) return this.#stream.fail(INTERNAL);
    this.#asked = true;
    void this.#answer(bytes);
  }

  async #answer(bytes: Buffer): Promise<void> {
    try {
      const request = decodeCheckRequest(bytes);
      // The transport reuses the buffer as soon as this is awaited.
      const reply = await this.#check(
        request.body.length === 0 ? request : { ...request, body: Buffer.from(request.body) },
      );
      this.#stream.send(encodeCheckResponse(reply, MESSAGE_OFFSET));
      this.#stream.finish();
    } catch (error) {
      this.#onDefect(error);
      this.#stream.fail(INTERNAL);
    }
  }

  /** Without a request message there is no answer. */
  end(): "later" {
    if (!this.#asked) this.#stream.fail(INTERNAL);
    return "later";
  }

  /** The decision is already recorded; nobody waits for it. */
  reset(): void {}
}
