/**
 * Anthropic's `usage`: `input_tokens` excludes cache reads and writes. Reports of a stream are
 * cumulative and partial: each field replaces its previous value.
 */
import { isObject } from "../fields.ts";
import type { ModelUsage } from "../model.ts";
import { count } from "../numbers.ts";

/** Collects the reports of one answer. */
export class UsageReports {
  #fields: Record<string, unknown> = {};
  #seen = false;

  add(report: unknown): void {
    if (!isObject(report)) return;
    this.#seen = true;
    for (const [key, value] of Object.entries(report)) {
      if (value !== null && value !== undefined) this.#fields[key] = value;
    }
  }

  get usage(): ModelUsage | undefined {
    return this.#seen ? parseUsage(this.#fields) : undefined;
  }
}

export function parseUsage(value: unknown): ModelUsage | undefined {
  if (!isObject(value)) return undefined;
  const read = count(value["cache_read_input_tokens"]);
  const split = isObject(value["cache_creation"]) ? value["cache_creation"] : {};
  const wrote5m = count(split["ephemeral_5m_input_tokens"]);
  const wrote1h = count(split["ephemeral_1h_input_tokens"]);
  // The split may be missing or smaller than the total: the rest has the default lifetime.
  const written = Math.max(count(value["cache_creation_input_tokens"]), wrote5m + wrote1h);
  const details = value["output_tokens_details"];
  return {
    inputTokens: count(value["input_tokens"]) + read + written,
    cachedInputTokens: read,
    cacheWrite5mTokens: written - wrote1h,
    cacheWrite1hTokens: wrote1h,
    outputTokens: count(value["output_tokens"]),
    reasoningTokens:
      isObject(details) && typeof details["thinking_tokens"] === "number"
        ? count(details["thinking_tokens"])
        : undefined,
  };
}

export function serialiseUsage(usage: ModelUsage | undefined): object {
  const read = usage?.cachedInputTokens ?? 0;
  const wrote5m = usage?.cacheWrite5mTokens ?? 0;
  const wrote1h = usage?.cacheWrite1hTokens ?? 0;
  return {
    input_tokens: Math.max(0, (usage?.inputTokens ?? 0) - read - wrote5m - wrote1h),
    cache_creation_input_tokens: wrote5m + wrote1h,
    cache_read_input_tokens: read,
    cache_creation: { ephemeral_5m_input_tokens: wrote5m, ephemeral_1h_input_tokens: wrote1h },
    output_tokens: usage?.outputTokens ?? 0,
    ...(usage?.reasoningTokens === undefined
      ? {}
      : { output_tokens_details: { thinking_tokens: usage.reasoningTokens } }),
  };
}

/** `message_delta` has no split of the cache writes. */
export function serialiseDeltaUsage(usage: ModelUsage | undefined): object {
  const { cache_creation: _, ...rest } = serialiseUsage(usage) as Record<string, unknown>;
  return rest;
}
