/**
 * Answers of MCP servers on their way to an agent: the sidecar's external processor. The sidecar's
 * authorizer has judged the request by then. A body stays in Envoy unless lists in it must be
 * filtered, or a stream of the older transport names the path of its messages.
 */
import { CALL_HEADER } from "../../envoy/config/sidecar.ts";
import type { HeaderMap, Phase } from "../../envoy/ext-proc/messages.ts";
import type { Exchange, Processor } from "../../envoy/ext-proc/server.ts";
import { EventRewriter, EventTooLarge } from "../protocol/event-rewriter.ts";
import type { McpPolicy } from "../protocol/item-policy.ts";
import { renderErrors, type RequestId } from "../protocol/json-rpc.ts";
import {
  filteredMessage,
  isReadable,
  MAX_LIST_EVENT_BYTES,
  mediaType,
} from "../protocol/list-answer.ts";

/** A forwarded request to an MCP server. */
export interface McpCall {
  readonly policy: McpPolicy;
  /** Whether lists may be in the answer that must be filtered. */
  readonly filters: boolean;
  /** Whether the answer comes on another stream, so that this one has nothing to say. */
  readonly isAnsweredElsewhere: boolean;
  /** Ids of the requests in the message. */
  readonly ids: readonly RequestId[];
  /**
   * Receives the data of a stream's `endpoint` event (older transport); the returned function is
   * called when the stream ends. undefined if there is no such event.
   */
  readonly openEndpoint: ((data: string) => () => void) | undefined;
}

/**
 * Returns a forwarded call by its id; `other` if it is not of an MCP server, undefined if it is not
 * known.
 */
export type FindCall = (id: string) => McpCall | "other" | undefined;

/** Maximum size in bytes of an answer in which lists are filtered. */
const MAX_LIST_BYTES = 32 * 1_048_576;

const EMPTY = Buffer.alloc(0);

type AnswerMode =
  | { readonly kind: "pass" }
  /** The body is dropped: clients do not read it. */
  | { readonly kind: "drop" }
  | { readonly kind: "events"; readonly rewriter: EventRewriter }
  /**
   * The whole body is one JSON text with lists: it is held here until its end, since Envoy's own
   * buffer is smaller than the lists of some servers.
   */
  | { readonly kind: "lists"; readonly held: Buffer[] };

export class SidecarAnswer implements Processor {
  readonly #exchange: Exchange;
  readonly #find: FindCall;
  #call: McpCall | undefined;
  #mode: AnswerMode = { kind: "pass" };
  #heldBytes = 0;
  #closeEndpoint: (() => void) | undefined;

  constructor(exchange: Exchange, find: FindCall) {
    this.#exchange = exchange;
    this.#find = find;
  }

  phase(phase: Phase): void {
    switch (phase.kind) {
      case "request_headers":
        return this.#request(phase.headers);
      case "response_headers":
        return this.#headers(phase.headers, phase.endOfStream);
      case "response_body":
        return this.#body(phase.body, phase.endOfStream);
      case "request_body":
      case "request_trailers":
      case "response_trailers":
        return this.#exchange.pass(phase.kind);
    }
  }

  closed(): void {
    this.#closeEndpoint?.();
  }

  #request(headers: HeaderMap): void {
    const call = this.#find(headers.get(CALL_HEADER) ?? "");
    if (call === undefined) return this.#exchange.fail();
    if (call !== "other") this.#call = call;
    const isRead = call !== "other" && (call.filters || call.openEndpoint !== undefined);
    if (!isRead) return this.#exchange.pass("request_headers");
    // A compressed body cannot be read.
    this.#exchange.proceed("request_headers", { headers: { remove: ["accept-encoding"] } });
  }

  #headers(headers: HeaderMap, endOfStream: boolean): void {
    const call = this.#call;
    const status = Number(headers.get(":status") ?? 0);
    if (call === undefined || endOfStream) return this.#exchange.pass("response_headers");
    if (call.isAnsweredElsewhere) this.#mode = { kind: status < 300 ? "drop" : "pass" };
    else if (call.filters && status < 300 && !isReadable(headers)) {
      const message = "The MCP server's list is neither JSON nor a stream of events.";
      const error = { code: 502, message, data: { code: "upstream_invalid", status: 502 } };
      return this.#exchange.respond({
        status: 502,
        headers: { set: [["content-type", "application/json"]] },
        body: renderErrors({ ids: call.ids, isBatch: false }, error),
      });
    } else this.#mode = this.#modeOf(call, headers);
    switch (this.#mode.kind) {
      case "pass":
        return this.#exchange.pass("response_headers");
      case "drop":
      case "events":
      case "lists":
        // The length of a body that may change is not known.
        return this.#exchange.proceed("response_headers", {
          headers: { remove: ["content-length"] },
          responseBodyMode: "streamed",
        });
    }
  }

  #modeOf(call: McpCall, headers: HeaderMap): AnswerMode {
    const type = mediaType(headers);
    if (type === "text/event-stream" && (call.filters || call.openEndpoint !== undefined)) {
      return {
        kind: "events",
        rewriter: new EventRewriter({
          wrapId: (id) => id,
          inspect: (data) => this.#inspect(call, data),
          maxEventBytes: MAX_LIST_EVENT_BYTES,
        }),
      };
    }
    return call.filters ? { kind: "lists", held: [] } : { kind: "pass" };
  }

  /** Returns data to send instead of an event's data; undefined to leave it. */
  #inspect(call: McpCall, data: Buffer): Buffer | undefined {
    if (call.openEndpoint !== undefined && this.#closeEndpoint === undefined) {
      this.#closeEndpoint = call.openEndpoint(data.toString("utf8").trim());
      return undefined;
    }
    return call.filters ? filteredMessage(data, call.policy, call.ids[0]) : undefined;
  }

  #body(body: Buffer, endOfStream: boolean): void {
    switch (this.#mode.kind) {
      case "pass":
        return this.#exchange.pass("response_body");
      case "drop":
        return this.#exchange.proceed("response_body", { body: EMPTY });
      case "lists":
        return this.#hold(this.#mode.held, body, endOfStream);
      case "events":
        return this.#pushEvents(this.#mode.rewriter, body, endOfStream);
    }
  }

  #hold(held: Buffer[], body: Buffer, endOfStream: boolean): void {
    held.push(body);
    this.#heldBytes += body.length;
    if (this.#heldBytes > MAX_LIST_BYTES) return this.#exchange.fail();
    if (!endOfStream) return this.#exchange.proceed("response_body", { body: EMPTY });
    const { policy, ids } = this.#call as McpCall;
    const whole = Buffer.concat(held);
    const filtered = whole.length === 0 ? whole : filteredMessage(whole, policy, ids[0]);
    this.#exchange.proceed("response_body", { body: filtered ?? whole });
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
    if (parts.length === 1 && parts[0] === body) this.#exchange.pass("response_body");
    else this.#exchange.proceed("response_body", { body: parts });
  }
}
