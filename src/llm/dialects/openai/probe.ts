/** Inspects a chat completions stream as it passes. */
import type { Usage } from "../dialect.ts";
import { hasValue, memberName, stringBytes } from "../byte-scan.ts";
import { isObject } from "../fields.ts";
import { isReason } from "./finish.ts";
import { HIDE, PASS } from "../stream-probe.ts";
import type { StreamProbe, ChunkVerdict } from "../stream-probe.ts";
import { parseJson } from "../stream-errors.ts";
import { parseError } from "./errors.ts";
import { parseUsage } from "./usage.ts";

const FINISH_REASON = memberName("finish_reason");
const USAGE = memberName("usage");
const ERROR = memberName("error");
const DONE = "[DONE]";
const TOOL_CALLS = memberName("tool_calls");
const TEXTS = ["content", "arguments", "reasoning_content", "refusal"].map(memberName);

export class OpenaiProbe implements StreamProbe {
  /** The client did not request usage: the event that contains only usage is hidden. */
  readonly #hidesUsage: boolean;
  #finished = false;
  #done = false;
  #usage: Usage | undefined;
  #usageIsFinal = false;
  #characters = 0;
  #sawCall = false;

  constructor(wantsUsage: boolean) {
    this.#hidesUsage = !wantsUsage;
  }

  isPlain(block: Buffer): boolean {
    const text = block.toString("latin1");
    for (const name of TEXTS) {
      const bytes = stringBytes(text, name);
      this.#characters += bytes;
      // A delta has one kind of content.
      if (bytes > 0) break;
    }
    if (!this.#sawCall && this.#characters === 0) this.#sawCall = hasValue(text, TOOL_CALLS);
    return !(
      hasValue(text, FINISH_REASON) ||
      hasValue(text, USAGE) ||
      text.includes(DONE) ||
      text.includes(ERROR)
    );
  }

  event(_name: string | undefined, data: string): ChunkVerdict {
    if (data === "[DONE]") {
      // Without a finish_reason the client would see a normal stop: end() reports what happened
      // instead.
      if (!this.#finished) return HIDE;
      this.#done = true;
      return PASS;
    }
    const chunk = parseJson(data);
    if (!isObject(chunk)) return PASS;
    if (isObject(chunk["error"]) || typeof chunk["error"] === "string") {
      return {
        kind: "error",
        message: parseError(502, chunk)?.message ?? "the upstream reported an error",
      };
    }
    const choices = Array.isArray(chunk["choices"]) ? chunk["choices"] : [];
    if (choices.some((choice: unknown) => isObject(choice) && isReason(choice["finish_reason"])))
      this.#finished = true;
    const usage = parseUsage(chunk["usage"]);
    if (usage === undefined) return PASS;
    this.#usage = usage;
    this.#usageIsFinal = this.#finished || choices.length === 0;
    return choices.length === 0 && this.#hidesUsage ? HIDE : PASS;
  }

  /** Some servers with this dialect never send `[DONE]`, but `finish_reason` is required. */
  get complete(): boolean {
    return this.#finished || this.#done;
  }

  get usage(): Usage | undefined {
    return this.#usage;
  }

  get usageIsFinal(): boolean {
    return this.#usageIsFinal;
  }

  get outputBytes(): number {
    return this.#characters;
  }

  get sawContent(): boolean {
    return this.#characters > 0 || this.#sawCall;
  }
}
