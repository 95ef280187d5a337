/** Inspects a stream of the Responses API as it passes. */
import type { Usage } from "../dialect.ts";
import { isObject } from "../fields.ts";
import { type ChunkVerdict, PASS, type StreamProbe } from "../stream-probe.ts";
import { parseJson } from "../stream-errors.ts";
import { parseUsage } from "./usage.ts";

/** The events that end a stream, each with the complete response. */
const FINAL = new Set(["response.completed", "response.incomplete", "response.failed"]);

export class ResponsesProbe implements StreamProbe {
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
    const event = parseJson(data);
    if (!isObject(event)) return PASS;
    const { type, delta, response } = event;
    if (type === "error") return { kind: "error", message: messageOf(event) };
    if (typeof delta === "string") {
      this.outputBytes += delta.length;
      this.sawContent = true;
    }
    if (typeof type !== "string" || !FINAL.has(type)) return PASS;
    this.usage = isObject(response) ? parseUsage(response["usage"]) : undefined;
    this.usageIsFinal = this.usage !== undefined;
    if (type === "response.failed") return { kind: "error", message: type };
    this.complete = true;
    return PASS;
  }
}

/** OpenAI's servers send the message at the top, or in a member `error`. */
function messageOf(event: Readonly<Record<string, unknown>>): string {
  const { message, error } = event;
  if (typeof message === "string") return message;
  return isObject(error) && typeof error["message"] === "string" ? error["message"] : "error";
}
