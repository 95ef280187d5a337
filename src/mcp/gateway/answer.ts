/**
 * McpAnswer is the answer of an MCP server on its way to the client. A body stays in Envoy unless
 * something in it must be decided or counted: the ids of a stream's events, lists that must be
 * filtered, and the end of a tool's call, which is recorded before the client gets it.
 */
import { publicError } from "../../access/errors.ts";
import { CALL_ID, Refusal } from "../../access/refusal.ts";
import { InternalHeader } from "../../envoy/config/names.ts";
import type { Exchange } from "../../envoy/ext-proc/server.ts";
import type { HeaderChanges, HeaderMap } from "../../envoy/ext-proc/messages.ts";
import { EventRewriter, EventTooLarge } from "../protocol/event-rewriter.ts";
import type { McpPolicy } from "../protocol/item-policy.ts";
import { renderError, type RequestId } from "../protocol/json-rpc.ts";
import {
  filteredMessage,
  isReadable,
  MAX_LIST_EVENT_BYTES,
  mediaType,
} from "../protocol/list-answer.ts";
import { McpHeader } from "../protocol/names.ts";
import type { SessionSeal } from "../protocol/seal.ts";
import { McpRefusal } from "./refuse.ts";

/**
 * Headers of the server that say who may call it, and how: the gateway says that of itself. See
 * `headers` in surface.ts.
 */
const NOT_FOR_CLIENTS = [
  "access-control-allow-origin",
  "access-control-allow-credentials",
  "access-control-allow-headers",
  "access-control-allow-methods",
  "access-control-expose-headers",
  "www-authenticate",
] as const;

/** Maximum size in bytes of an error that is read. */
const MAX_ERROR_BYTES = 16_384;

/** The request that is answered. */
export interface AnsweredRequest {
  readonly callId: string;
  readonly method: "POST" | "GET" | "DELETE";
  /** Whom sessions belong to. */
  readonly owner: string;
  /** The session that the client named: as the client has it, and as the server has it. */
  readonly session: { readonly sealed: string; readonly own: string } | undefined;
  readonly policy: McpPolicy;
  /** Whether lists may be in the answer that must be filtered. */
  readonly filters: boolean;
  /** Whether the end of the answer is recorded. */
  readonly recorded: boolean;
  /** Ids of the requests. */
  readonly ids: readonly RequestId[];
  /** Headers to set for a web page of an allowed origin. */
  readonly cors: NonNullable<HeaderChanges["set"]>;
}

export interface AnswerEvents {
  /** The server could not be reached, or its answer cannot be forwarded: nothing was sent. */
  refuse(refusal: Refusal): void;
  /** The credential was not accepted. */
  unauthorized(): void;
  /**
   * The answer is complete but for its last bytes.
   * @param proceed called once they may be sent; false if they must not
   */
  complete(status: number, bytes: number, proceed: (ok: boolean) => void): void;
  streamed(): void;
}

type Mode =
  | { readonly kind: "pass" }
  /** Chunks pass, and are counted. */
  | { readonly kind: "count" }
  | { readonly kind: "events"; readonly rewriter: EventRewriter }
  /** The whole body is one JSON text with lists. */
  | { readonly kind: "lists" }
  /** An error of the server, which may say that the session is gone. */
  | { readonly kind: "error" };

export class McpAnswer {
  readonly #exchange: Exchange;
  readonly #request: AnsweredRequest;
  readonly #seal: SessionSeal;
  readonly #events: AnswerEvents;
  #mode: Mode = { kind: "pass" };
  /** The server's id of a session that this answer opens. */
  #opened: string | undefined;
  #status = 0;
  #bytes = 0;

  constructor(
    exchange: Exchange,
    request: AnsweredRequest,
    seal: SessionSeal,
    events: AnswerEvents,
  ) {
    this.#exchange = exchange;
    this.#request = request;
    this.#seal = seal;
    this.#events = events;
  }

  /** Status of the answer; 0 before it began. */
  get status(): number {
    return this.#status;
  }

  /** Bytes of the body so far, where they are counted. */
  get bytes(): number {
    return this.#bytes;
  }

  headers(headers: HeaderMap, endOfStream: boolean): void {
    const status = Number(headers.get(":status") ?? 0);
    const refusal = this.#refusalOf(status, headers);
    if (refusal !== undefined) {
      this.#events.refuse(new McpRefusal(refusal, { ids: this.#request.ids }));
      return;
    }
    this.#status = status;
    const set: [string, string][] = [[CALL_ID, this.#request.callId]];
    for (const [name, value] of this.#request.cors) set.push([name, value]);
    const session = headers.get(McpHeader.session);
    if (session !== undefined) {
      this.#opened = session;
      set.push([McpHeader.session, this.#sealed(session)]);
    }
    const own = new Set(set.map(([name]) => name));
    const remove = NOT_FOR_CLIENTS.filter((name) => headers.has(name) && !own.has(name));
    const changes: HeaderChanges = { set, remove };
    const reply = { headers: changes } as const;
    // The length of a body that may change is not known.
    const anyLength: HeaderChanges = { set, remove: [...remove, "content-length"] };
    if (endOfStream) return this.#end(() => this.#exchange.proceed("response_headers", reply));
    this.#mode = this.#modeOf(status, headers);
    switch (this.#mode.kind) {
      case "pass":
        return this.#exchange.proceed("response_headers", reply);
      case "count":
        return this.#exchange.proceed("response_headers", {
          headers: changes,
          responseBodyMode: "streamed",
        });
      case "events":
        this.#events.streamed();
        return this.#exchange.proceed("response_headers", {
          headers: anyLength,
          responseBodyMode: "streamed",
        });
      case "lists":
      case "error":
        return this.#exchange.proceed("response_headers", {
          headers: anyLength,
          responseBodyMode: "buffered",
        });
    }
  }

  body(body: Buffer, endOfStream: boolean): void {
    this.#bytes += body.length;
    switch (this.#mode.kind) {
      case "pass":
        return this.#exchange.pass("response_body");
      case "count":
        if (!endOfStream) return this.#exchange.pass("response_body");
        return this.#end(() => this.#exchange.pass("response_body"));
      case "events":
        return this.#pushEvents(this.#mode.rewriter, body, endOfStream);
      case "lists":
        return this.#lists(body);
      case "error":
        return this.#error(body);
    }
  }

  #end(send: () => void): void {
    if (!this.#request.recorded) return send();
    this.#events.complete(this.#status, this.#bytes, (ok) => {
      if (ok) send();
      else this.#exchange.fail();
    });
  }

  /** Returns why an answer cannot be forwarded. */
  #refusalOf(status: number, headers: HeaderMap): Refusal | undefined {
    const local = headers.get(InternalHeader.local);
    if (local !== undefined) return localRefusal(status, local);
    if (status === 401 || status === 407) {
      this.#events.unauthorized();
      const message = "The MCP server does not accept the gateway's credential.";
      return new Refusal(publicError("upstream_unauthorized", message));
    }
    if (status >= 300 && status < 400)
      return invalidUpstream("The MCP server redirects, which a gateway must not follow.");
    if (this.#request.filters && status < 300 && !isReadable(headers))
      return invalidUpstream("The MCP server's list is neither JSON nor a stream of events.");
    return undefined;
  }

  #modeOf(status: number, headers: HeaderMap): Mode {
    const { filters, policy, recorded, session } = this.#request;
    const type = mediaType(headers);
    if (type === "text/event-stream") {
      return {
        kind: "events",
        rewriter: new EventRewriter({
          wrapId: (id) => this.#seal.wrapEvent(this.#eventContext(), id),
          inspect: filters ? (data) => this.#filtered(data, policy) : undefined,
          maxEventBytes: MAX_LIST_EVENT_BYTES,
        }),
      };
    }
    if (status === 400 && session !== undefined && isShort(headers)) return { kind: "error" };
    if (filters) return { kind: "lists" };
    return recorded ? { kind: "count" } : { kind: "pass" };
  }

  #sealed(own: string): string {
    const { owner, session } = this.#request;
    return session?.own === own ? session.sealed : this.#seal.seal(owner, own);
  }

  #eventContext(): string {
    return eventContext(this.#request.owner, this.#request.session?.own ?? this.#opened);
  }

  #pushEvents(rewriter: EventRewriter, body: Buffer, endOfStream: boolean): void {
    let parts: readonly Buffer[];
    try {
      parts = rewriter.push(body);
      if (endOfStream) parts = [...parts, ...rewriter.end()];
    } catch (error) {
      if (!(error instanceof EventTooLarge)) throw error;
      return this.#exchange.fail();
    }
    const send = (): void => {
      if (parts.length === 1 && parts[0] === body) this.#exchange.pass("response_body");
      else this.#exchange.proceed("response_body", { body: parts });
    };
    if (endOfStream) this.#end(send);
    else send();
  }

  /** Returns data instead of an event's data; undefined to leave it. */
  #filtered(data: Buffer, policy: McpPolicy): Buffer | undefined {
    return filteredMessage(data, policy, this.#request.ids[0]);
  }

  #lists(body: Buffer): void {
    const filtered = body.length === 0 ? undefined : this.#filtered(body, this.#request.policy);
    this.#end(() => {
      if (filtered === undefined) this.#exchange.pass("response_body");
      else this.#exchange.proceed("response_body", { body: filtered });
    });
  }

  /**
   * Some servers answer 400 for a session that they do not know, which clients do not understand.
   */
  #error(body: Buffer): void {
    if (!saysSessionIsGone(body)) {
      this.#end(() => this.#exchange.pass("response_body"));
      return;
    }
    const message = "The MCP server does not know the session any more: start a new one.";
    const [id] = this.#request.ids;
    const error = { code: 404, message, data: { code: "session_not_found", status: 404 } };
    this.#status = 404;
    this.#end(() =>
      this.#exchange.proceed("response_body", {
        headers: { set: [[":status", "404"]] },
        body: Buffer.from(renderError(id, error)),
      }),
    );
  }
}

/** Returns what an event id is bound to. */
export function eventContext(owner: string, session: string | undefined): string {
  return JSON.stringify([owner, session ?? ""]);
}

function isShort(headers: HeaderMap): boolean {
  return (
    mediaType(headers) === "application/json" &&
    Number(headers.get("content-length") ?? MAX_ERROR_BYTES) <= MAX_ERROR_BYTES
  );
}

/** `Bad Request: No valid session ID provided`, in words that differ from server to server. */
function saysSessionIsGone(body: Buffer): boolean {
  if (body.length > MAX_ERROR_BYTES) return false;
  try {
    const parsed = JSON.parse(body.toString("utf8")) as { error?: { message?: unknown } } | null;
    const message = parsed?.error?.message;
    return typeof message === "string" && /\bsession\b/i.test(message);
  } catch {
    return false;
  }
}

function invalidUpstream(message: string): Refusal {
  return new Refusal(publicError("upstream_invalid", message));
}

/** Envoy answered by itself. */
function localRefusal(status: number, local: string): Refusal {
  if (status === 413)
    return new Refusal(publicError("body_too_large", "The message is above 1 MiB."));
  if (status === 408)
    return new Refusal(publicError("request_timeout", "The body did not arrive."));
  if (status === 504 || local.includes("timeout"))
    return new Refusal(publicError("upstream_timeout", "The MCP server did not answer in time."));
  return new Refusal(publicError("upstream_unavailable", "The MCP server could not be reached."));
}
