/**
 * Fake upstreams: HTTP servers in the shapes of OpenAI, Anthropic and Gemini. Each records its
 * requests, and answers as the test configured.
 */
import http from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { gzipSync } from "node:zlib";
import type { ErrorScript, Script, Shapes } from "./script.ts";
import { anthropicShapes } from "./shapes/anthropic.ts";
import { geminiShapes } from "./shapes/gemini.ts";
import { openaiShapes } from "./shapes/openai.ts";
import { until } from "./wait.ts";

export type DialectName = "openai" | "anthropic" | "gemini";
export const DIALECTS: readonly DialectName[] = ["openai", "anthropic", "gemini"];

const SHAPES: Readonly<Record<DialectName, Shapes>> = {
  openai: openaiShapes,
  anthropic: anthropicShapes,
  gemini: geminiShapes,
};

/** Suffix of each kind's base URL: unusual, so that a wrong path is detected. */
const BASE_PATHS: Readonly<Record<DialectName, string>> = {
  openai: "/oai/v1",
  anthropic: "/ant/v1",
  gemini: "/goo/v1beta",
};

export interface Recorded {
  readonly method: string;
  readonly path: string;
  readonly headers: http.IncomingHttpHeaders;
  readonly rawHeaders: readonly string[];
  readonly body: string;
  readonly json: Record<string, unknown>;
  /** Time when it was complete, milliseconds of `performance.now()`. */
  readonly at: number;
  /** Whether the answer was completed, or the peer disconnected before. */
  readonly closed: Promise<"finished" | "cancelled">;
}

export type Handler = (request: Recorded, response: http.ServerResponse) => void | Promise<void>;

export class Vendor {
  readonly dialect: DialectName;
  readonly key: string;
  readonly requests: Recorded[] = [];
  readonly #server: http.Server;
  readonly #queue: Handler[] = [];
  readonly #sockets = new Set<Socket>();
  #default: Handler | undefined;

  constructor(dialect: DialectName, key: string) {
    this.dialect = dialect;
    this.key = key;
    this.#server = http.createServer((request, response) => {
      this.#serve(request, response).catch(() => response.destroy());
    });
    this.#server.keepAliveTimeout = 600_000;
    this.#server.on("connection", (socket) => {
      this.#sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => this.#sockets.delete(socket));
    });
  }

  static async start(
    dialect: DialectName,
    key = `sk-${dialect}-${Math.random().toString(36).slice(2)}`,
  ): Promise<Vendor> {
    const vendor = new Vendor(dialect, key);
    await new Promise<void>((resolve, reject) => {
      vendor.#server.once("error", reject);
      vendor.#server.listen(0, "127.0.0.1", resolve);
    });
    return vendor;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get host(): string {
    return `127.0.0.1:${this.port}`;
  }

  get basePath(): string {
    return BASE_PATHS[this.dialect];
  }

  get baseURL(): string {
    return `http://${this.host}${this.basePath}`;
  }

  /** Answers of the next requests, in order. */
  next(...handlers: Handler[]): this {
    this.#queue.push(...handlers);
    return this;
  }

  /** Answers every request without an answer from {@link next}. */
  always(handler: Handler): this {
    this.#default = handler;
    return this;
  }

  reset(): void {
    this.requests.length = 0;
    this.#queue.length = 0;
    this.#default = undefined;
  }

  /** The only request that came. */
  get only(): Recorded {
    if (this.requests.length !== 1)
      throw new Error(`${this.dialect} saw ${this.requests.length} requests, not 1`);
    return this.requests[0] as Recorded;
  }

  async request(index = 0): Promise<Recorded> {
    return until(() => this.requests[index], { what: `request ${index} at ${this.dialect}` });
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  // ---- answers ----

  /** Answers in this vendor's shape, streamed if requested. */
  says(script: Script): Handler {
    const shapes = SHAPES[this.dialect];
    return async (request, response) => {
      const model = modelOf(request);
      if (!shapes.isStream(request.path, request.json)) {
        return json(response, 200, shapes.whole(script, model), {
          gzip: script.gzip === true,
          headers: script.headers,
        });
      }
      response.writeHead(200, { "content-type": "text/event-stream", ...script.headers });
      response.flushHeaders();
      let content = 0;
      const at = (point: Script["hold"] | Script["cut"], kind: string): boolean =>
        point !== undefined && point.before === kind && content >= (point.afterContent ?? 0);
      for (const frame of shapes.frames(script, model, request.json)) {
        if (at(script.hold, frame.kind)) await script.hold?.gate.pass();
        if (at(script.cut, frame.kind)) {
          if (script.cut?.how === "reset") response.socket?.resetAndDestroy();
          else response.end();
          return;
        }
        if (response.destroyed) return;
        await new Promise<void>((resolve) => response.write(frame.text, () => resolve()));
        if (frame.kind === "content") content++;
      }
      response.end();
    };
  }

  /** Answers with an error in this vendor's shape. */
  fails(error: ErrorScript, options: { readonly gzip?: boolean } = {}): Handler {
    return (_request, response) =>
      json(response, error.status, SHAPES[this.dialect].error(error), {
        gzip: options.gzip === true,
        headers: error.headers,
      });
  }

  /** Answers with raw bytes, e.g. of another endpoint. */
  replies(status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): Handler {
    return (_request, response) => json(response, status, body, { headers });
  }

  /** Accepts the request and sends nothing until the peer disconnects. */
  hangs(): Handler {
    return async (request) => {
      await request.closed;
    };
  }

  /** Closes the connection without an answer. */
  resets(): Handler {
    return (_request, response) => {
      response.socket?.resetAndDestroy();
    };
  }

  async #serve(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const parts: Buffer[] = [];
    for await (const part of request as AsyncIterable<Buffer>) parts.push(part);
    const body = Buffer.concat(parts).toString("utf8");
    const closed = new Promise<"finished" | "cancelled">((resolve) => {
      response.on("close", () => resolve(response.writableFinished ? "finished" : "cancelled"));
    });
    const recorded: Recorded = {
      method: request.method ?? "",
      path: request.url ?? "",
      headers: request.headers,
      rawHeaders: request.rawHeaders,
      body,
      json: parse(body),
      at: performance.now(),
      closed,
    };
    this.requests.push(recorded);
    const handler = this.#queue.shift() ?? this.#default;
    if (handler === undefined)
      return json(response, 418, { error: { message: "the test told this fake nothing" } }, {});
    await handler(recorded, response);
  }
}

function parse(body: string): Record<string, unknown> {
  try {
    return JSON.parse(body) as Record<string, unknown>;
  } catch {
    return {};
  }
}

function modelOf(request: Recorded): string {
  const named = request.json["model"];
  if (typeof named === "string") return named;
  return decodeURIComponent(/\/models\/([^:?]+)/.exec(request.path)?.[1] ?? "unknown");
}

function json(
  response: http.ServerResponse,
  status: number,
  body: unknown,
  options: {
    readonly gzip?: boolean;
    readonly headers?: Readonly<Record<string, string>> | undefined;
  },
): void {
  const text = Buffer.from(JSON.stringify(body));
  const bytes = options.gzip === true ? gzipSync(text) : text;
  response
    .writeHead(status, {
      "content-type": "application/json",
      "content-length": bytes.length,
      ...(options.gzip === true ? { "content-encoding": "gzip" } : {}),
      ...options.headers,
    })
    .end(bytes);
}
