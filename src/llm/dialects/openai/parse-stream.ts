/**
 * A chat completions stream into model events. Field names: `ChatCompletionChunk` of the openai
 * SDK.
 */
import { isObject } from "../fields.ts";
import type { JsonObject } from "../fields.ts";
import type { StreamEvent, StreamParser } from "../model.ts";
import { STREAM_MALFORMED, parseJson } from "../stream-errors.ts";
import { parseError, statusOfCode } from "./errors.ts";
import { isReason, parseFinish } from "./finish.ts";
import { parseUsage } from "./usage.ts";

export class OpenaiStreamParser implements StreamParser {
  /** Creates the ids of calls for servers that send none. */
  readonly #id: string;
  /** The upstream's index -> the latest call with that index. */
  readonly #calls = new Map<unknown, { readonly number: number; readonly id: string }>();
  #callCount = 0;
  #started = false;
  #refusal: string | undefined;
  #finished = false;
  closed = false;

  constructor(id: string) {
    this.#id = id;
  }

  /** Some servers with this dialect never send `[DONE]`, but `finish_reason` is required. */
  get complete(): boolean {
    return this.#finished;
  }

  event(_name: string | undefined, data: string): readonly StreamEvent[] {
    if (data === "[DONE]") {
      this.closed = this.#finished;
      return [];
    }
    const chunk = parseJson(data);
    if (!isObject(chunk))
      return [{ kind: "error", error: { ...STREAM_MALFORMED, param: undefined } }];
    if (chunk["error"] !== undefined && chunk["error"] !== null) return [parseStreamError(chunk)];
    const events: StreamEvent[] = [];
    if (!this.#started) {
      this.#started = true;
      events.push({ kind: "start", id: textOf(chunk["id"]), model: textOf(chunk["model"]) });
    }
    const choice: unknown = Array.isArray(chunk["choices"]) ? chunk["choices"][0] : undefined;
    if (isObject(choice)) this.#choice(choice, events);
    const usage = parseUsage(chunk["usage"]);
    if (usage !== undefined)
      events.push({ kind: "usage", usage, final: this.#finished || !isObject(choice) });
    return events;
  }

  #choice(choice: JsonObject, events: StreamEvent[]): void {
    const delta = choice["delta"];
    if (isObject(delta)) this.#delta(delta, events);
    const reason = choice["finish_reason"];
    if (!isReason(reason) || this.#finished) return;
    this.#finished = true;
    events.push({
      kind: "finish",
      finish: parseFinish(reason, { hasCalls: this.#callCount > 0, refusal: this.#refusal }),
    });
  }

  #delta(delta: JsonObject, events: StreamEvent[]): void {
    const thinking = textOf(delta["reasoning_content"]) ?? textOf(delta["reasoning"]);
    if (thinking !== undefined) events.push({ kind: "thinking", vendor: "openai", text: thinking });
    const text = textOf(delta["content"]);
    if (text !== undefined) events.push({ kind: "text", text });
    const refusal = textOf(delta["refusal"]);
    if (refusal !== undefined) {
      this.#refusal = (this.#refusal ?? "") + refusal;
      events.push({ kind: "refusal", text: refusal });
    }
    const calls = delta["tool_calls"];
    if (Array.isArray(calls))
      calls.forEach((call: unknown, position) => this.#call(call, position, events));
  }

  #call(call: unknown, position: number, events: StreamEvent[]): void {
    if (!isObject(call)) return;
    const named = isObject(call["function"]) ? call["function"] : {};
    const index = call["index"] ?? position;
    const id = textOf(call["id"]);
    const name = textOf(named["name"]);
    let known = this.#calls.get(index);
    // Some servers send index 0 for every parallel call: another id with a name is another call.
    if (known === undefined || (id !== undefined && name !== undefined && id !== known.id)) {
      const number = this.#callCount;
      this.#callCount += 1;
      known = { number, id: id ?? `call_${this.#id}_${number}` };
      this.#calls.set(index, known);
      events.push({
        kind: "call_start",
        call: number,
        id: known.id,
        name: name ?? "",
        signature: undefined,
      });
    }
    const text = textOf(named["arguments"]);
    if (text !== undefined) events.push({ kind: "call_arguments", call: known.number, text });
  }
}

function parseStreamError(chunk: JsonObject): StreamEvent {
  const parsed = parseError(502, chunk);
  if (parsed === undefined)
    return { kind: "error", error: { ...STREAM_MALFORMED, param: undefined } };
  return { kind: "error", error: { ...parsed, status: statusOfCode(parsed.code) } };
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}
