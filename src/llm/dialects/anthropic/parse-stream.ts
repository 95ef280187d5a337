/**
 * A messages stream into model events. Event names: `RawMessageStreamEvent` of @anthropic-ai/sdk.
 */
import { isObject } from "../fields.ts";
import type { JsonObject } from "../fields.ts";
import type { StreamEvent, StreamParser } from "../model.ts";
import { STREAM_MALFORMED, parseJson } from "../stream-errors.ts";
import { parseError, statusOfCode } from "./errors.ts";
import { parseFinish } from "./finish.ts";
import { UsageReports } from "./usage.ts";

export class AnthropicStreamParser implements StreamParser {
  readonly #usage = new UsageReports();
  /** Content block index -> number of the tool call in it. */
  readonly #calls = new Map<unknown, number>();
  closed = false;

  get complete(): boolean {
    return this.closed;
  }

  event(_name: string | undefined, data: string): readonly StreamEvent[] {
    const event = parseJson(data);
    if (!isObject(event))
      return [{ kind: "error", error: { ...STREAM_MALFORMED, param: undefined } }];
    switch (event["type"]) {
      case "message_start":
        return this.#start(event["message"]);
      case "content_block_start":
        return this.#blockStart(event["index"], event["content_block"]);
      case "content_block_delta":
        return this.#delta(event["index"], event["delta"]);
      case "content_block_stop":
        return [{ kind: "block_end" }];
      case "message_delta":
        return this.#messageDelta(event);
      case "message_stop":
        this.closed = true;
        return [];
      case "error":
        return [parseStreamError(event)];
      default:
        // `ping`, and future events, which Anthropic asks its clients to skip.
        return [];
    }
  }

  #start(message: unknown): StreamEvent[] {
    const fields = isObject(message) ? message : {};
    const start: StreamEvent = {
      kind: "start",
      id: textOf(fields["id"]),
      model: textOf(fields["model"]),
    };
    return [start, ...this.#report(fields["usage"], false)];
  }

  #report(usage: unknown, final: boolean): StreamEvent[] {
    this.#usage.add(usage);
    const total = this.#usage.usage;
    return isObject(usage) && total !== undefined ? [{ kind: "usage", usage: total, final }] : [];
  }

  #blockStart(index: unknown, block: unknown): StreamEvent[] {
    if (!isObject(block)) return [];
    switch (block["type"]) {
      case "text":
        return nonEmpty(block["text"], (text) => ({ kind: "text", text }));
      case "thinking":
        return nonEmpty(block["thinking"], (text) => ({
          kind: "thinking",
          vendor: "anthropic",
          text,
        }));
      case "redacted_thinking":
        return nonEmpty(block["data"], (value) => ({
          kind: "redacted",
          signature: { vendor: "anthropic", value },
        }));
      case "tool_use": {
        const call = this.#calls.size;
        this.#calls.set(index, call);
        const start: StreamEvent = {
          kind: "call_start",
          call,
          id: textOf(block["id"]) ?? "",
          name: textOf(block["name"]) ?? "",
          signature: undefined,
        };
        const input = block["input"];
        // Usually `{}` here, with the arguments in later deltas; some servers send all at once.
        const whole = isObject(input) && Object.keys(input).length > 0 ? JSON.stringify(input) : "";
        return whole === "" ? [start] : [start, { kind: "call_arguments", call, text: whole }];
      }
      default:
        return [{ kind: "error", error: { ...STREAM_MALFORMED, param: undefined } }];
    }
  }

  #delta(index: unknown, delta: unknown): StreamEvent[] {
    if (!isObject(delta)) return [];
    switch (delta["type"]) {
      case "text_delta":
        return nonEmpty(delta["text"], (text) => ({ kind: "text", text }));
      case "thinking_delta":
        return nonEmpty(delta["thinking"], (text) => ({
          kind: "thinking",
          vendor: "anthropic",
          text,
        }));
      case "signature_delta":
        return nonEmpty(delta["signature"], (value) => ({
          kind: "thinking_signature",
          signature: { vendor: "anthropic", value },
        }));
      case "input_json_delta": {
        const call = this.#calls.get(index);
        return call === undefined
          ? []
          : nonEmpty(delta["partial_json"], (text) => ({ kind: "call_arguments", call, text }));
      }
      default:
        return [];
    }
  }

  #messageDelta(event: JsonObject): StreamEvent[] {
    const usage = this.#report(event["usage"], true);
    const delta = event["delta"];
    const reason = isObject(delta) ? delta["stop_reason"] : undefined;
    if (!isObject(delta) || typeof reason !== "string") return usage;
    return [
      ...usage,
      {
        kind: "finish",
        finish: parseFinish(reason, delta["stop_sequence"], delta["stop_details"]),
      },
    ];
  }
}

function parseStreamError(event: JsonObject): StreamEvent {
  const parsed = parseError(502, event);
  if (parsed === undefined)
    return { kind: "error", error: { ...STREAM_MALFORMED, param: undefined } };
  return { kind: "error", error: { ...parsed, status: statusOfCode(parsed.code) } };
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function nonEmpty(value: unknown, event: (text: string) => StreamEvent): StreamEvent[] {
  return typeof value === "string" && value !== "" ? [event(value)] : [];
}
