/** Clients of the MCP gateway that hold a silent stream of events open. */
import http from "node:http";
import { text } from "node:stream/consumers";

export interface StreamClientOptions {
  readonly port: number;
  /** `/ext/mcp/{name}` */
  readonly path: string;
  readonly key: string;
}

const INITIALIZE = JSON.stringify({
  jsonrpc: "2.0",
  id: 0,
  method: "initialize",
  params: {
    protocolVersion: "2025-11-25",
    capabilities: {},
    clientInfo: { name: "bench", version: "1.0.0" },
  },
});
const INITIALIZED = JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" });

/** A gateway on a busy machine refuses callers above their share. */
const RETRY_MS = 1_000;
const MOST_RETRIES = 60;

/** StreamClient is one client with its session and its open stream. */
export class StreamClient {
  readonly #options: StreamClientOptions;
  readonly #path: string;
  #response: http.IncomingMessage | undefined;
  #received = "";
  #onText: () => void = () => undefined;
  /** Whether the stream ended before {@link close}. */
  dropped = false;

  private constructor(options: StreamClientOptions, path: string) {
    this.#options = options;
    this.#path = path;
  }

  /** Opens a session and its stream by Streamable HTTP. */
  static async open(options: StreamClientOptions): Promise<StreamClient> {
    const client = new StreamClient(options, options.path);
    const opened = await client.#send("POST", options.path, INITIALIZE);
    expectStatus(opened, 200);
    await text(opened);
    const session = { "mcp-session-id": String(opened.headers["mcp-session-id"]) };
    const initialized = await client.#send("POST", options.path, INITIALIZED, session);
    expectStatus(initialized, 202);
    await text(initialized);
    await client.#listen(session);
    return client;
  }

  /** Opens a session by the old transport, HTTP+SSE, whose stream carries the answers too. */
  static async openOld(options: StreamClientOptions): Promise<StreamClient> {
    const client = new StreamClient(options, `${options.path}/sse`);
    await client.#listen({});
    const [, endpoint = ""] = await client.#until(/^data: (.+)\n/m);
    for (const body of [INITIALIZE, INITIALIZED]) {
      const taken = await client.#send("POST", endpoint, body);
      expectStatus(taken, 202);
      await text(taken);
      if (body === INITIALIZE) await client.#until(/"protocolVersion"/);
    }
    client.#received = "";
    return client;
  }

  /** Whether an event with this text has come. */
  has(part: string): boolean {
    return this.#received.includes(part);
  }

  close(): void {
    this.#response?.removeAllListeners("close");
    this.#response?.destroy();
  }

  async #listen(headers: http.OutgoingHttpHeaders): Promise<void> {
    const response = await this.#send("GET", this.#path, undefined, headers);
    expectStatus(response, 200);
    this.#response = response;
    response.on("data", (part: Buffer) => {
      this.#received += part.toString();
      this.#onText();
    });
    response.on("error", () => undefined);
    response.on("close", () => (this.dropped = true));
  }

  /** Waits until the received text matches. */
  async #until(pattern: RegExp): Promise<RegExpExecArray> {
    return new Promise((resolve) => {
      this.#onText = () => {
        const found = pattern.exec(this.#received);
        if (found !== null) resolve(found);
      };
      this.#onText();
    });
  }

  /** Sends a request, again after a pause while the gateway is busy. */
  async #send(
    method: string,
    path: string,
    body?: string,
    headers: http.OutgoingHttpHeaders = {},
  ): Promise<http.IncomingMessage> {
    for (let left = MOST_RETRIES; ; left--) {
      const response = await this.#sendOnce(method, path, body, headers);
      if (response.statusCode !== 429 || left === 0) return response;
      response.resume();
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }

  async #sendOnce(
    method: string,
    path: string,
    body: string | undefined,
    headers: http.OutgoingHttpHeaders,
  ): Promise<http.IncomingMessage> {
    const { port, key } = this.#options;
    return new Promise((resolve, reject) => {
      const request = http.request({
        host: "127.0.0.1",
        port,
        path,
        method,
        agent: false,
        headers: {
          authorization: `Bearer ${key}`,
          accept: method === "GET" ? "text/event-stream" : "application/json, text/event-stream",
          ...(body === undefined
            ? {}
            : { "content-type": "application/json", "content-length": Buffer.byteLength(body) }),
          ...headers,
        },
      });
      request.on("response", resolve).on("error", reject).end(body);
    });
  }
}

function expectStatus({ statusCode }: http.IncomingMessage, expected: number): void {
  if (statusCode !== expected) throw new Error(`status ${statusCode} instead of ${expected}`);
}
