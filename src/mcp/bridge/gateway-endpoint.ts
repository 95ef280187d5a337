/** The gateway's Streamable HTTP endpoint, as one client of the old transport uses it. */
import type http from "node:http";
import { parseMessage } from "./frame.ts";
import type { HeaderTable } from "./headers.ts";
import type { UnixCall, UnixCaller } from "./unix-caller.ts";

export interface GatewayEndpointOptions {
  readonly caller: UnixCaller;
  /** Path of the server at the gateway. */
  readonly path: string;
  /** Headers that identify the client; they contain its key. */
  readonly headers: HeaderTable;
}

type EndpointCall = Pick<UnixCall, "signal" | "onSent">;

export class GatewayEndpoint {
  readonly #options: GatewayEndpointOptions;
  #session: string | undefined;
  #version: string | undefined;

  constructor(options: GatewayEndpointOptions) {
    this.#options = options;
  }

  get hasSession(): boolean {
    return this.#session !== undefined;
  }

  /** Takes the session of the answer to `initialize`. */
  setSession(answer: http.IncomingMessage): void {
    const session = answer.headers["mcp-session-id"];
    this.#session = typeof session === "string" && session !== "" ? session : undefined;
  }

  /**
   * Takes the revision that the answer to `initialize` names.
   * @returns false if the answer is an error
   */
  setVersion(text: string): boolean {
    const result = parseMessage(text)?.["result"];
    if (typeof result !== "object" || result === null) return false;
    const version: unknown = "protocolVersion" in result ? result.protocolVersion : undefined;
    if (typeof version === "string" && /^[\w.-]{1,64}$/.test(version)) this.#version = version;
    return true;
  }

  /** Sends a frame. @param trace headers of the request that brought it */
  post(body: string, trace: HeaderTable, call: EndpointCall): Promise<http.IncomingMessage> {
    return this.#call(
      "POST",
      call,
      {
        ...trace,
        accept: ["application/json, text/event-stream"],
        "content-type": ["application/json"],
      },
      body,
    );
  }

  /** Opens a stream of the server's events. @param lastEventId resumes the stream of that event */
  stream(lastEventId: string | undefined, call: EndpointCall): Promise<http.IncomingMessage> {
    return this.#call("GET", call, {
      accept: ["text/event-stream"],
      ...(lastEventId !== undefined && { "last-event-id": [lastEventId] }),
    });
  }

  delete(call: EndpointCall): Promise<http.IncomingMessage> {
    return this.#call("DELETE", call, {});
  }

  #call(
    method: UnixCall["method"],
    call: EndpointCall,
    headers: HeaderTable,
    body?: string,
  ): Promise<http.IncomingMessage> {
    const { caller, path, headers: remembered } = this.#options;
    return caller.call({
      method,
      path,
      ...call,
      ...(body !== undefined && { body }),
      headers: {
        ...remembered,
        // What is read here must not be compressed.
        "accept-encoding": ["identity"],
        ...(this.#session !== undefined && { "mcp-session-id": [this.#session] }),
        ...(this.#version !== undefined && { "mcp-protocol-version": [this.#version] }),
        ...headers,
      },
    });
  }
}
