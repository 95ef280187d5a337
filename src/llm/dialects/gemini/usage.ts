/**
 * Gemini's `usageMetadata`: the prompt count includes cached tokens; thoughts are counted
 * separately from the candidates.
 */
import { isObject } from "../fields.ts";
import type { ModelUsage } from "../model.ts";
import { count } from "../numbers.ts";

export function parseUsage(value: unknown): ModelUsage | undefined {
  if (!isObject(value)) return undefined;
  const thoughts = value["thoughtsTokenCount"];
  return {
    inputTokens: count(value["promptTokenCount"]) + count(value["toolUsePromptTokenCount"]),
    cachedInputTokens: count(value["cachedContentTokenCount"]),
    cacheWrite5mTokens: 0,
    cacheWrite1hTokens: 0,
    outputTokens: count(value["candidatesTokenCount"]) + count(thoughts),
    reasoningTokens: typeof thoughts === "number" ? count(thoughts) : undefined,
  };
}

export function serialiseUsage(usage: ModelUsage): object {
  const thoughts = usage.reasoningTokens ?? 0;
  return {
    promptTokenCount: usage.inputTokens,
    candidatesTokenCount: Math.max(0, usage.outputTokens - thoughts),
    ...(thoughts > 0 ? { thoughtsTokenCount: thoughts } : {}),
    ...(usage.cachedInputTokens > 0 ? { cachedContentTokenCount: usage.cachedInputTokens } : {}),
    totalTokenCount: usage.inputTokens + usage.outputTokens,
  };
}
