/**
 * Relay is between Envoy and the providers whose answers are read to the end (`spec.onDisconnect:
 * readToEnd`): Envoy ends an upstream request when its client disconnects, and only the rest of the
 * answer reports the cost of the call. A relayed call passes through Envoy twice, with this process
 * in between; the second Envoy listener is on a private socket and does the usual TLS.
 *
 * When the client has disconnected, the relay continues to read, passes the usage to the call and
 * discards the rest.
 */
import http from "node:http";
import type { Readable } from "node:stream";
import { InternalHeader, CALL_ID_HEADER } from "../../envoy/config/names.ts";
import type { Clock } from "../../platform/clock.ts";
import { decompress } from "../answer/answer.ts";
import type { Call } from "../call.ts";
import type { CallRegistry } from "../call-registry.ts";
import type { StreamReader, Usage } from "../dialects/dialect.ts";
import { createPassReader, dialects } from "../dialects/registry.ts";

export interface RelayOptions {
  readonly calls: CallRegistry;
  readonly clock: Clock;
  /** Unix socket of Envoy's listener towards the providers. */
  readonly envoySocket: string;
  readonly onDefect: (error: unknown) => void;
}

/** Called with the usage when the rest is read; undefined if it contains none. */
export type RestRead = (usage: Usage | undefined) => void;

/** Maximum time to wait for the rest of an answer after the client has disconnected. */
const REST_MS = 600_000;
/**
 * An attempt that its call does not claim within this time was ended by Envoy because of a timeout,
 * not because of the client.
 */
const CLAIM_MS = 2_000;
/** Larger answers are not parsed for their usage. */
const MAX_WHOLE_BYTES = 32 * 1024 * 1024;

export class Relay {
  readonly #options: RelayOptions;
  readonly #agent = new http.Agent({ keepAlive: true, maxSockets: Infinity });
  /** The latest attempt of each call that is under way, by call id. */
  readonly #attempts = new Map<string, RelayedAttempt>();
  /** Usage of finished answers: their clients may disconnect before they receive them. */
  readonly #known = new WeakMap<Call, Usage>();

  constructor(options: RelayOptions) {
    this.#options = options;
  }

  /** Serves Envoy's first pass. */
  createServer(): http.Server {
    const server = http.createServer((request, response) => {
      try {
        this.#relay(request, response);
      } catch (error) {
        this.#options.onDefect(error);
        response.destroy();
      }
    });
    // Envoy enforces the timeouts.
    server.requestTimeout = 0;
    server.headersTimeout = 0;
    server.keepAliveTimeout = 120_000;
    return server;
  }

  /**
   * Takes over a call whose client has disconnected.
   * @returns false if no attempt of it is under way here: `done` is then not called
   */
  claim(call: Call, done: RestRead): boolean {
    const known = this.#known.get(call);
    if (known !== undefined) {
      done(known);
      return true;
    }
    return this.#attempts.get(call.request.id)?.claim(done) ?? false;
  }

  close(): void {
    for (const attempt of this.#attempts.values()) attempt.abort();
    this.#agent.destroy();
  }

  #relay(request: http.IncomingMessage, response: http.ServerResponse): void {
    const id = String(request.headers[CALL_ID_HEADER] ?? "");
    const call = this.#options.calls.get(id);
    if (call === undefined) {
      response.writeHead(421).end();
      return;
    }
    const attempt = new RelayedAttempt(call, response, this.#options.clock, (usage) => {
      if (this.#attempts.get(id) === attempt) this.#attempts.delete(id);
      if (usage !== undefined) this.#known.set(call, usage);
    });
    this.#attempts.set(id, attempt);
    const upstream = http.request({
      socketPath: this.#options.envoySocket,
      agent: this.#agent,
      method: request.method ?? "POST",
      path: request.url ?? "/",
      headers: request.rawHeaders as unknown as http.OutgoingHttpHeaders,
      setHost: false,
    });
    attempt.follow(upstream);
    request.on("error", () => undefined);
    request.pipe(upstream);
  }
}

class RelayedAttempt {
  readonly #call: Call;
  readonly #response: http.ServerResponse;
  readonly #clock: Clock;
  readonly #over: RestRead;
  #upstream: http.ClientRequest | undefined;
  #meter: Meter | undefined;
  #claimed: RestRead | undefined;
  #ended = false;
  #cancelTimer: (() => void) | undefined;

  constructor(call: Call, response: http.ServerResponse, clock: Clock, over: RestRead) {
    this.#call = call;
    this.#response = response;
    this.#clock = clock;
    this.#over = over;
  }

  follow(upstream: http.ClientRequest): void {
    this.#upstream = upstream;
    upstream.on("error", () => this.#end(undefined, true));
    upstream.on("response", (answer) => this.#answer(answer));
    this.#response.on("error", () => undefined);
    this.#response.on("close", () => {
      if (this.#ended || this.#claimed !== undefined) return;
      // Envoy reports the client's disconnect on another connection, which may take a moment.
      this.#cancelTimer = this.#clock.after(CLAIM_MS, () => this.abort());
    });
  }

  claim(done: RestRead): boolean {
    if (this.#ended) return false;
    this.#claimed = done;
    this.#cancelTimer?.();
    this.#cancelTimer = this.#clock.after(REST_MS, () => this.abort());
    return true;
  }

  abort(): void {
    this.#upstream?.destroy();
    this.#end(undefined, true);
  }

  #answer(answer: http.IncomingMessage): void {
    const status = answer.statusCode ?? 502;
    if (answer.headers[InternalHeader.local] === undefined) {
      this.#response.writeHead(status, answer.rawHeaders);
    } else {
      // Envoy's local reply, not the provider's: the caller gets our own error.
      this.#response.writeHead(status, { "content-type": "application/json" });
    }
    this.#response.flushHeaders();
    this.#meter = status < 400 ? meterOf(this.#call, answer) : undefined;
    answer.on("data", (chunk: Buffer) => this.#chunk(answer, chunk));
    answer.on("error", () => this.#end(undefined, true));
    answer.on("end", () => this.#end(this.#meter?.end(), !answer.complete));
  }

  #chunk(answer: Readable, chunk: Buffer): void {
    this.#meter?.push(chunk);
    if (this.#response.destroyed || this.#response.write(chunk)) return;
    answer.pause();
    const response = this.#response;
    const resume = (): void => {
      response.off("drain", resume).off("close", resume);
      answer.resume();
    };
    response.on("drain", resume).on("close", resume);
  }

  #end(usage: Usage | undefined, broken: boolean): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#cancelTimer?.();
    this.#over(usage);
    if (broken) this.#response.destroy();
    else this.#response.end();
    this.#claimed?.(usage);
  }
}

/** Reads the usage of an answer as it passes. */
interface Meter {
  push(chunk: Buffer): void;
  /** The answer is whole. */
  end(): Usage | undefined;
}

function meterOf(call: Call, answer: http.IncomingMessage): Meter {
  const { dialect } = call.delivery;
  const type = (answer.headers["content-type"] ?? "").toLowerCase();
  if (type.startsWith("text/event-stream")) return new StreamMeter(createPassReader(dialect, true));
  return new WholeMeter(answer.headers["content-encoding"], (body) =>
    dialects[dialect].readUsage(body),
  );
}

class StreamMeter implements Meter {
  readonly #reader: StreamReader;

  constructor(reader: StreamReader) {
    this.#reader = reader;
  }

  push(chunk: Buffer): void {
    this.#reader.push(chunk);
  }

  end(): Usage | undefined {
    this.#reader.end();
    return this.#reader.usageIsFinal ? this.#reader.usage : undefined;
  }
}

class WholeMeter implements Meter {
  readonly #encoding: string | undefined;
  readonly #readUsage: (body: unknown) => Usage | undefined;
  readonly #parts: Buffer[] = [];
  #bytes = 0;

  constructor(encoding: string | undefined, readUsage: (body: unknown) => Usage | undefined) {
    this.#encoding = encoding;
    this.#readUsage = readUsage;
  }

  push(chunk: Buffer): void {
    this.#bytes += chunk.length;
    if (this.#bytes <= MAX_WHOLE_BYTES) this.#parts.push(chunk);
    else this.#parts.length = 0;
  }

  end(): Usage | undefined {
    if (this.#bytes > MAX_WHOLE_BYTES) return undefined;
    try {
      const body = decompress(Buffer.concat(this.#parts), this.#encoding);
      return this.#readUsage(JSON.parse(body.toString("utf8")));
    } catch {
      return undefined;
    }
  }
}
