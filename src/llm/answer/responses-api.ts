/**
 * OpenAI's Responses API, forwarded byte for byte: only its usage is read. Source: `Response.usage`
 * and `ResponseCompletedEvent` in the official SDK (openai/resources/responses).
 */
import type { PublicError } from "../../access/errors.ts";
import type { StreamReader, Usage } from "../dialects/dialect.ts";
import { PassStreamReader } from "../dialects/pass-stream.ts";
import { type ChunkVerdict, PASS, type StreamProbe } from "../dialects/stream-probe.ts";

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
  return typeof value === "object" && value !== null
    ? (value as Record<string, unknown>)[name]
    : undefined;
}

/** The events that end a stream, each with the complete response. */
const FINAL = new Set(["response.completed", "response.incomplete", "response.failed"]);

export function createResponsesReader(): StreamReader {
  return new PassStreamReader({ renderStreamError }, new ResponsesProbe());
}

/** `ResponseErrorEvent`. */
function renderStreamError({ code, message }: PublicError): string {
  const error = { type: "error", code, message, param: null, sequence_number: 0 };
  return `event: error\ndata: ${JSON.stringify(error)}\n\n`;
}

class ResponsesProbe implements StreamProbe {
  complete = false;
  usage: Usage | undefined;
  usageIsFinal = false;
  outputBytes = 0;
  sawContent = false;

  /** Always false: each event is small, and its type matters. */
  isPlain(block: Buffer): boolean {
    return block.length === 0;
  }

  event(_name: string | undefined, data: string): ChunkVerdict {
    let event: unknown;
    try {
      event = JSON.parse(data);
    } catch {
      return PASS;
    }
    const type = member(event, "type");
    if (type === "error") return { kind: "error", message: String(member(event, "message")) };
    const delta = member(event, "delta");
    if (typeof delta === "string") {
      this.outputBytes += delta.length;
      this.sawContent = true;
    }
    if (typeof type !== "string" || !FINAL.has(type)) return PASS;
    this.usage = readResponsesUsage(member(event, "response"));
    this.usageIsFinal = this.usage !== undefined;
    if (type === "response.failed") return { kind: "error", message: type };
    this.complete = true;
    return PASS;
  }
}
