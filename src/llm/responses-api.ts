/**
 * OpenAI's Responses API, passed through byte for byte: only its usage is read.
 * Source: `Response.usage` and `ResponseCompletedEvent` in the official SDK (openai/resources/responses).
 */
import type { StreamOutcome, StreamReader, Usage } from "./dialects/dialect.ts";
import { SseParser } from "./dialects/sse.ts";

const EMPTY = Buffer.alloc(0);

export function readResponsesUsage(response: unknown): Usage | undefined {
  const usage = member(response, "usage");
  const input = member(usage, "input_tokens");
  const output = member(usage, "output_tokens");
  if (typeof input !== "number" || typeof output !== "number") return undefined;
  const cached = member(member(usage, "input_tokens_details"), "cached_tokens");
  return {
    inputTokens: input,
    cachedInputTokens: typeof cached === "number" ? cached : 0,
    cacheWrite5mTokens: 0,
    cacheWrite1hTokens: 0,
    outputTokens: output,
  };
}

function member(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}

/** The events that end a stream, each with the whole response. */
const FINAL = new Set(["response.completed", "response.incomplete", "response.failed"]);

export function createResponsesReader(): StreamReader {
  return new ResponsesReader();
}

class ResponsesReader implements StreamReader {
  readonly #parser = new SseParser();
  outcome: StreamOutcome = { kind: "cut" };
  usage: Usage | undefined;
  usageIsFinal = false;
  outputCharacters = 0;
  sawContent = false;

  push(chunk: Buffer): Buffer {
    for (const event of this.#parser.push(chunk)) this.#read(event.data);
    return chunk;
  }

  end(): Buffer {
    for (const event of this.#parser.end()) this.#read(event.data);
    if (this.outcome.kind !== "cut") return EMPTY;
    const message = "The provider's stream ended in the middle.";
    const error = { type: "error", code: "stream_interrupted", message, param: null, sequence_number: 0 };
    return Buffer.from(`event: error\ndata: ${JSON.stringify(error)}\n\n`);
  }

  #read(data: string): void {
    let event: unknown;
    try {
      event = JSON.parse(data);
    } catch {
      return;
    }
    const type = member(event, "type");
    if (type === "error") this.outcome = { kind: "error", message: String(member(event, "message")) };
    const delta = member(event, "delta");
    if (typeof delta === "string") {
      this.outputCharacters += delta.length;
      this.sawContent = true;
    }
    if (typeof type !== "string" || !FINAL.has(type)) return;
    this.usage = readResponsesUsage(member(event, "response"));
    this.usageIsFinal = this.usage !== undefined;
    this.outcome = type === "response.failed" ? { kind: "error", message: "response.failed" } : { kind: "complete" };
  }
}
