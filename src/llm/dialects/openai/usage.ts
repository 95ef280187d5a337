/**
 * OpenAI's `usage`: the prompt count includes cached tokens, the completion count includes
 * reasoning.
 */
import { isObject } from "../fields.ts";
import type { ModelUsage } from "../model.ts";
import { count } from "../numbers.ts";

/** Reads chat completions and embeddings alike: the latter have no completion. */
export function parseUsage(value: unknown): ModelUsage | undefined {
  if (!isObject(value)) return undefined;
  const inputDetails = value["prompt_tokens_details"];
  const outputDetails = value["completion_tokens_details"];
  const input = isObject(inputDetails) ? inputDetails : {};
  const output = isObject(outputDetails) ? outputDetails : {};
  return {
    inputTokens: count(value["prompt_tokens"]),
    cachedInputTokens: count(input["cached_tokens"]),
    cacheWrite5mTokens: count(input["cache_write_tokens"]),
    cacheWrite1hTokens: 0,
    outputTokens: count(value["completion_tokens"]),
    reasoningTokens:
      typeof output["reasoning_tokens"] === "number"
        ? count(output["reasoning_tokens"])
        : undefined,
  };
}

export function serialiseUsage(usage: ModelUsage): object {
  const cacheWrites = usage.cacheWrite5mTokens + usage.cacheWrite1hTokens;
  return {
    prompt_tokens: usage.inputTokens,
    completion_tokens: usage.outputTokens,
    total_tokens: usage.inputTokens + usage.outputTokens,
    prompt_tokens_details: {
      cached_tokens: usage.cachedInputTokens,
      ...(cacheWrites > 0 ? { cache_write_tokens: cacheWrites } : {}),
    },
    ...(usage.reasoningTokens === undefined
      ? {}
      : { completion_tokens_details: { reasoning_tokens: usage.reasoningTokens } }),
  };
}
