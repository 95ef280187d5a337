/**
 * A streamGenerateContent stream (`alt=sse`) into model events. Each event is a
 * `GenerateContentResponse`.
 */
import { isObject } from "../fields.ts";
import type { JsonObject } from "../fields.ts";
import type { Signature, StreamEvent, StreamParser } from "../model.ts";
import { STREAM_MALFORMED, parseJson } from "../stream-errors.ts";
import { parseError, statusOfBody } from "./errors.ts";
import { parseFinish } from "./finish.ts";
import { blockedPrompt } from "./parse-response.ts";
import { parseUsage } from "./usage.ts";

const MALFORMED: StreamEvent = { kind: "error", error: { ...STREAM_MALFORMED, param: undefined } };

export class GeminiStreamParser implements StreamParser {
  /** Creates the ids of calls, which Gemini before 3 does not send. */
  readonly #id: string;
  #started = false;
  #calls = 0;
  #finished = false;
  /** There is no final event: usage may follow the finish reason, and the stream simply ends. */
  readonly closed = false;

  constructor(id: string) {
    this.#id = id;
  }

  get complete(): boolean {
    return this.#finished;
  }

  event(_name: string | undefined, data: string): readonly StreamEvent[] {
    const chunk = parseJson(data);
    if (!isObject(chunk)) return [MALFORMED];
    if (isObject(chunk["error"])) return [parseStreamError(chunk)];
    const events: StreamEvent[] = [];
    if (!this.#started) {
      this.#started = true;
      events.push({
        kind: "start",
        id: textOf(chunk["responseId"]),
        model: textOf(chunk["modelVersion"]),
      });
    }
    const candidate: unknown = Array.isArray(chunk["candidates"])
      ? chunk["candidates"][0]
      : undefined;
    if (isObject(candidate)) this.#candidate(candidate, events);
    const blocked = blockedPrompt(chunk["promptFeedback"]);
    if (blocked !== undefined && !this.#finished) {
      this.#finished = true;
      events.push({ kind: "finish", finish: blocked });
    }
    const usage = parseUsage(chunk["usageMetadata"]);
    if (usage !== undefined) events.push({ kind: "usage", usage, final: this.#finished });
    return events;
  }

  #candidate(candidate: JsonObject, events: StreamEvent[]): void {
    const content = candidate["content"];
    if (isObject(content) && Array.isArray(content["parts"])) {
      for (const part of content["parts"]) if (isObject(part)) this.#part(part, events);
    }
    const reason = candidate["finishReason"];
    if (typeof reason !== "string" || this.#finished) return;
    this.#finished = true;
    const finish = parseFinish(reason, textOf(candidate["finishMessage"]), this.#calls > 0);
    events.push(finish.kind === "finish" ? finish : { kind: "error", error: finish.error });
  }

  #part(part: JsonObject, events: StreamEvent[]): void {
    const value = textOf(part["thoughtSignature"]);
    const signature: Signature | undefined =
      value === undefined ? undefined : { vendor: "gemini", value };
    const call = part["functionCall"];
    if (isObject(call)) {
      this.#call(call, signature, events);
      return;
    }
    const text = textOf(part["text"]);
    const thought = part["thought"] === true;
    if (text !== undefined)
      events.push(thought ? { kind: "thinking", vendor: "gemini", text } : { kind: "text", text });
    if (signature !== undefined)
      events.push({ kind: thought ? "thinking_signature" : "text_signature", signature });
    const known = ["text", "thought", "thoughtSignature"];
    if (part["text"] === undefined && Object.keys(part).some((key) => !known.includes(key)))
      events.push(MALFORMED);
  }

  #call(call: JsonObject, signature: Signature | undefined, events: StreamEvent[]): void {
    // Arguments in pieces are only sent on request, which this translation does not make.
    if (call["partialArgs"] !== undefined || call["willContinue"] === true) {
      events.push(MALFORMED);
      return;
    }
    const number = this.#calls;
    this.#calls += 1;
    events.push({
      kind: "call_start",
      call: number,
      id: textOf(call["id"]) ?? `call_${this.#id}_${number}`,
      name: textOf(call["name"]) ?? "",
      signature,
    });
    const args = call["args"];
    if (isObject(args) && Object.keys(args).length > 0)
      events.push({ kind: "call_arguments", call: number, text: JSON.stringify(args) });
    events.push({ kind: "block_end" });
  }
}

function parseStreamError(chunk: JsonObject): StreamEvent {
  const status = statusOfBody(chunk);
  const parsed = parseError(status, chunk);
  return parsed === undefined ? MALFORMED : { kind: "error", error: parsed };
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}
