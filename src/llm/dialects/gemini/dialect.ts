/** What the pipeline needs of Gemini's wire format. The path, not the body, names the model and asks for a stream. */
import type { CallFacts, Dialect } from "../dialect.ts";
import { bodyObject, choiceCount, largestLimit } from "../facts.ts";
import { isObject } from "../fields.ts";
import { renderError, renderStreamError } from "./errors.ts";
import { parseUsage } from "./usage.ts";

export const gemini: Dialect = {
  name: "gemini",
  readFacts(value: unknown): CallFacts {
    const body = bodyObject(value);
    // Google's API takes a field in both spellings: what counts is the larger.
    const configs = [body["generationConfig"], body["generation_config"]].filter(isObject);
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
      wantsUsage: true,
    };
  },
  readUsage: (body) => (isObject(body) ? parseUsage(body["usageMetadata"]) : undefined),
  renderError,
  renderStreamError,
};
