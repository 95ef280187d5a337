/**
 * `Response.usage`: the input count includes cached tokens, the output count includes reasoning.
 */
import { isObject } from "../fields.ts";
import type { ModelUsage } from "../model.ts";
import { count } from "../numbers.ts";

/** Reads the usage of a response; undefined if it has none, as before its end. */
export function parseUsage(value: unknown): ModelUsage | undefined {
  if (!isObject(value)) return undefined;
  const input = value["input_tokens"];
  const output = value["output_tokens"];
  if (typeof input !== "number" || typeof output !== "number") return undefined;
  const inputDetails = value["input_tokens_details"];
  const outputDetails = value["output_tokens_details"];
  const reasoning = isObject(outputDetails) ? outputDetails["reasoning_tokens"] : undefined;
  return {
    inputTokens: count(input),
    cachedInputTokens: isObject(inputDetails) ? count(inputDetails["cached_tokens"]) : 0,
    cacheWrite5mTokens: isObject(inputDetails) ? count(inputDetails["cache_write_tokens"]) : 0,
    cacheWrite1hTokens: 0,
    outputTokens: count(output),
    reasoningTokens: typeof reasoning === "number" ? count(reasoning) : undefined,
  };
}

export function serialiseUsage(usage: ModelUsage): object {
  return {
    input_tokens: usage.inputTokens,
    input_tokens_details: {
      cached_tokens: usage.cachedInputTokens,
      cache_write_tokens: usage.cacheWrite5mTokens + usage.cacheWrite1hTokens,
    },
    output_tokens: usage.outputTokens,
    output_tokens_details: { reasoning_tokens: usage.reasoningTokens ?? 0 },
    total_tokens: usage.inputTokens + usage.outputTokens,
  };
}
