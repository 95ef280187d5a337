/** Inspects a messages stream as it passes. */
import type { Usage } from "../dialect.ts";
import { hasValue, memberName, stringBytes } from "../byte-scan.ts";
import { isObject } from "../fields.ts";
import { PASS } from "../stream-probe.ts";
import type { StreamProbe, ChunkVerdict } from "../stream-probe.ts";
import { parseJson } from "../stream-errors.ts";
import { parseError } from "./errors.ts";
import { UsageReports } from "./usage.ts";

const USAGE = memberName("usage");
const MESSAGE_STOP = memberName("message_stop");
const ERROR = memberName("error");
const TOOL_USE = memberName("tool_use");
const TEXTS = ["text", "partial_json", "thinking"].map(memberName);

export class AnthropicProbe implements StreamProbe {
  readonly #reports = new UsageReports();
  #complete = false;
  #usageIsFinal = false;
  #characters = 0;
  #sawCall = false;

  isPlain(block: Buffer): boolean {
    const text = block.toString("latin1");
    for (const name of TEXTS) this.#characters += stringBytes(text, name);
    if (!this.#sawCall && this.#characters === 0) this.#sawCall = text.includes(TOOL_USE);
    return !(hasValue(text, USAGE) || text.includes(MESSAGE_STOP) || text.includes(ERROR));
  }

  event(_name: string | undefined, data: string): ChunkVerdict {
    const event = parseJson(data);
    if (!isObject(event)) return PASS;
    switch (event["type"]) {
      case "message_start":
        this.#reports.add(isObject(event["message"]) ? event["message"]["usage"] : undefined);
        return PASS;
      case "message_delta":
        this.#reports.add(event["usage"]);
        this.#usageIsFinal = isObject(event["usage"]);
        return PASS;
      case "message_stop":
        this.#complete = true;
        return PASS;
      case "error":
        return {
          kind: "error",
          message: parseError(502, event)?.message ?? "the upstream reported an error",
        };
      default:
        return PASS;
    }
  }

  get complete(): boolean {
    return this.#complete;
  }

  get usage(): Usage | undefined {
    return this.#reports.usage;
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
