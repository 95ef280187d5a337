/**
 * Gemini's wire format, as far as the pipeline needs it. The path, not the body, names the model
 * and requests a stream.
 */
import type { BodyFields, CallFacts, Dialect, ReasoningBound } from "../dialect.ts";
import { choiceCount, largestLimit } from "../facts.ts";
import { isObject } from "../fields.ts";
import { renderError, renderStreamError } from "./errors.ts";
import { parseUsage } from "./usage.ts";

export const gemini: Dialect = {
  name: "gemini",
  readFacts(body: BodyFields): CallFacts {
    // Google's API accepts a field in both spellings: the larger value counts.
    const configs = [body.get("generationConfig"), body.get("generation_config")].filter(isObject);
    const read = (camel: string, snake: string): unknown[] =>
      configs.flatMap((config) => [config[camel], config[snake]]);
    return {
      model: undefined,
      stream: false,
      maxOutputTokens: largestLimit(
        read("maxOutputTokens", "max_output_tokens"),
        "generationConfig.maxOutputTokens",
      ),
      choices: Math.max(
        ...read("candidateCount", "candidate_count").map((value) =>
          choiceCount(value, "generationConfig.candidateCount"),
        ),
        1,
      ),
      reasoning: reasoningBound(
        read("thinkingConfig", "thinking_config")
          .filter(isObject)
          .flatMap((config) => [config["thinkingBudget"], config["thinking_budget"]]),
      ),
      wantsUsage: true,
    };
  },
  readUsage: (body) => (isObject(body) ? parseUsage(body["usageMetadata"]) : undefined),
  renderError,
  renderStreamError,
};

/** Thinking budgets: 0 disables thinking, a negative one leaves the amount to the model. */
function reasoningBound(budgets: readonly unknown[]): ReasoningBound {
  const tokens = budgets.filter((budget) => typeof budget === "number");
  if (tokens.length === 0) return { kind: "unspecified" };
  const most = Math.max(...tokens);
  if (tokens.some((budget) => budget < 0)) return { kind: "open" };
  return most === 0 ? { kind: "off" } : { kind: "budget", tokens: most };
}
