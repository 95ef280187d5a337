/**
 * Inspects a streamGenerateContent stream as it passes. Every event contains the usage so far: only
 * the last one is parsed.
 */
import type { Usage } from "../dialect.ts";
import { hasValue, memberName, stringBytes } from "../byte-scan.ts";
import { isObject } from "../fields.ts";
import { PASS } from "../stream-probe.ts";
import type { StreamProbe, ChunkVerdict } from "../stream-probe.ts";
import { readEvent, splitEvents } from "../sse.ts";
import { parseJson } from "../stream-errors.ts";
import { parseError } from "./errors.ts";
import { parseUsage } from "./usage.ts";

const USAGE = memberName("usageMetadata");
const FINISH_REASON = memberName("finishReason");
const BLOCK_REASON = memberName("blockReason");
const ERROR = memberName("error");
const TEXT = memberName("text");
const NOT_TEXT = ["functionCall", "inlineData", "executableCode"].map(memberName);

export class GeminiProbe implements StreamProbe {
  /** The last block that reported usage, not parsed yet. */
  #usageBlock: Buffer | undefined;
  #usage: Usage | undefined;
  #complete = false;
  #characters = 0;
  #sawOther = false;

  isPlain(block: Buffer): boolean {
    const text = block.toString("latin1");
    this.#characters += stringBytes(text, TEXT);
    for (const name of NOT_TEXT) {
      if (!text.includes(name)) continue;
      this.#sawOther = true;
      // A call has no single string to measure: its whole event is counted.
      this.#characters += block.length;
    }
    if (text.includes(USAGE)) this.#usageBlock = block;
    return !(hasValue(text, FINISH_REASON) || text.includes(BLOCK_REASON) || text.includes(ERROR));
  }

  event(_name: string | undefined, data: string): ChunkVerdict {
    const chunk = parseJson(data);
    if (!isObject(chunk)) return PASS;
    if (isObject(chunk["error"])) {
      return {
        kind: "error",
        message: parseError(502, chunk)?.message ?? "the upstream reported an error",
      };
    }
    const feedback = chunk["promptFeedback"];
    if (isObject(feedback) && typeof feedback["blockReason"] === "string") this.#complete = true;
    const candidates = Array.isArray(chunk["candidates"]) ? chunk["candidates"] : [];
    if (
      candidates.some(
        (candidate: unknown) =>
          isObject(candidate) && typeof candidate["finishReason"] === "string",
      )
    ) {
      this.#complete = true;
    }
    return PASS;
  }

  get complete(): boolean {
    return this.#complete;
  }

  get usage(): Usage | undefined {
    if (this.#usageBlock !== undefined) {
      // The last report counts, however the preceding bytes were split into blocks.
      const last = splitEvents(this.#usageBlock).findLast((bytes) => bytes.includes(USAGE));
      const chunk = last === undefined ? undefined : parseJson(readEvent(last)?.data ?? "");
      this.#usage = isObject(chunk) ? parseUsage(chunk["usageMetadata"]) : undefined;
      this.#usageBlock = undefined;
    }
    return this.#usage;
  }

  get usageIsFinal(): boolean {
    return this.#complete && this.usage !== undefined;
  }

  get outputBytes(): number {
    return this.#characters;
  }

  get sawContent(): boolean {
    return this.#characters > 0 || this.#sawOther;
  }
}
