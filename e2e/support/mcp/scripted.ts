/**
 * An MCP server that answers as a test says: for what no well-behaved server does. It records what
 * reaches it.
 */
import http from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";

export interface ReceivedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: string;
}

export interface ScriptedAnswer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Leaves the answer open. */
  readonly open?: boolean;
}

export class ScriptedServer {
  /** Everything that arrived, in order. */
  readonly received: ReceivedRequest[] = [];
  /** Answers to the next requests. */
  answer: (request: ReceivedRequest) => ScriptedAnswer = () => ({ status: 500 });
  /** Called when a request has ended, by whichever side. */
  closed: () => void = () => undefined;
  readonly #server: http.Server;

  private constructor() {
    this.#server = http.createServer((request, response) => {
      this.#serve(request, response).catch(() => response.destroy());
    });
  }

  async #serve(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const bytes = await buffer(request);
    const received = {
      method: request.method ?? "",
      path: request.url ?? "",
      headers: request.headers,
      body: bytes.toString("utf8"),
    };
    this.received.push(received);
    const { status = 200, headers = {}, body = "", open } = this.answer(received);
    response.once("close", () => this.closed());
    const length = open === true ? {} : { "content-length": Buffer.byteLength(body) };
    response.writeHead(status, { "content-type": "application/json", ...length, ...headers });
    if (open === true) response.write(body);
    else response.end(body);
  }

  static async start(): Promise<ScriptedServer> {
    const scripted = new ScriptedServer();
    await new Promise<void>((resolve) => scripted.#server.listen(0, "127.0.0.1", resolve));
    return scripted;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/mcp?tenant=1`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

/** An answer that lists tools. */
export function toolList(...names: readonly string[]): string {
  return JSON.stringify({
    jsonrpc: "2.0",
    id: 1,
    result: { tools: names.map((name) => ({ name, inputSchema: { type: "object" } })) },
  });
}
