/** A client's keep-alive connection: one request at a time, usually the same bytes each time. */
import net from "node:net";
import { performance } from "node:perf_hooks";
import tls from "node:tls";
import { MessageReader } from "./http1.ts";

export interface Answered {
  /** undefined for a good answer; else a short description of the error. */
  readonly error: string | undefined;
  /** From the request to the first byte of the body, milliseconds. */
  readonly firstByteMs: number;
  /** From the request to the end of the body, milliseconds. */
  readonly latencyMs: number;
}

/** An upstream that stays silent for this long has failed. */
const TIMEOUT_MS = 15_000;

/** The certificate was verified before: see target.ts. */
const TLS = {
  secureContext: tls.createSecureContext(),
  rejectUnauthorized: false,
  ALPNProtocols: ["http/1.1"],
};

export interface ConnectionOptions {
  readonly port: number;
  readonly request: Buffer;
  /** Returns whether the body of an answer is complete. */
  readonly isWhole: (body: Buffer) => boolean;
  /** Name for the handshake; without it there is no TLS. */
  readonly serverName?: string | undefined;
  /** Whether each request gets a connection of its own; sessions are not resumed. */
  readonly fresh?: boolean | undefined;
  /**
   * Text of the request that each request replaces by another of the same length, so that no two
   * are equal.
   */
  readonly placeholder?: string | undefined;
}

/** Numbers of the requests, which differ from those of an earlier process. */
let number = Date.now() * 1_000;

export class Connection {
  readonly #port: number;
  readonly #request: Buffer;
  readonly #isWhole: (body: Buffer) => boolean;
  readonly #serverName: string | undefined;
  readonly #fresh: boolean;
  /** Where the request contains its number; undefined if it has none. */
  readonly #numberAt: { readonly start: number; readonly length: number } | undefined;
  readonly #reader: () => MessageReader;
  #socket: net.Socket | undefined;
  #done: ((answered: Answered) => void) | undefined;
  #sentAt = 0;
  #firstByteAt = 0;
  #status = "";
  #body: Buffer[] = [];

  constructor(options: ConnectionOptions) {
    this.#port = options.port;
    this.#request = Buffer.from(options.request);
    this.#isWhole = options.isWhole;
    this.#serverName = options.serverName;
    this.#fresh = options.fresh === true;
    const { placeholder } = options;
    this.#numberAt =
      placeholder === undefined
        ? undefined
        : { start: this.#request.indexOf(placeholder), length: placeholder.length };
    this.#reader = () =>
      new MessageReader({
        head: (head) => {
          this.#status = head.slice(9, 12);
        },
        body: (part) => {
          if (this.#body.length === 0) this.#firstByteAt = performance.now();
          this.#body.push(part);
        },
        end: () => this.#answered(),
      });
  }

  /** `since`: the time at which the request was due, if it had to wait for this connection. */
  ask(done: (answered: Answered) => void, since = performance.now()): void {
    this.#done = done;
    this.#sentAt = since;
    this.#body = [];
    if (this.#numberAt !== undefined) {
      const { start, length } = this.#numberAt;
      this.#request.write(String(number++).padStart(length, "0"), start, "latin1");
    }
    (this.#socket ??= this.#connect()).write(this.#request);
  }

  close(): void {
    this.#socket?.destroy();
  }

  #connect(): net.Socket {
    const to = { port: this.#port, host: "127.0.0.1", noDelay: true };
    const socket =
      this.#serverName === undefined
        ? net.connect(to)
        : tls.connect({ ...to, ...TLS, servername: this.#serverName });
    const reader = this.#reader();
    socket.setTimeout(TIMEOUT_MS, () => socket.destroy(new Error("timeout")));
    socket.on("data", (data: Buffer) => reader.push(data));
    let reason = "connection closed";
    socket.on("error", (error: NodeJS.ErrnoException) => {
      reason = error.code ?? error.message;
    });
    // The next request opens another.
    socket.on("close", () => {
      if (this.#socket !== socket) return;
      this.#socket = undefined;
      this.#finish(reason);
    });
    return socket;
  }

  #answered(): void {
    if (this.#fresh) {
      this.#socket?.destroy();
      this.#socket = undefined;
    }
    if (this.#status !== "200") return this.#finish(`status ${this.#status}`);
    this.#finish(this.#isWhole(Buffer.concat(this.#body)) ? undefined : "answer not whole");
  }

  #finish(error: string | undefined): void {
    const done = this.#done;
    this.#done = undefined;
    done?.({
      error,
      firstByteMs: this.#firstByteAt - this.#sentAt,
      latencyMs: performance.now() - this.#sentAt,
    });
  }
}
