/** What the pipeline needs of OpenAI's wire format. */
import type { CallFacts, Dialect } from "../dialect.ts";
import { bodyObject, choiceCount, requiredModel, streamFlag, tokenLimit } from "../facts.ts";
import { isObject } from "../fields.ts";
import { renderError, renderStreamError } from "./errors.ts";
import { parseUsage } from "./usage.ts";

/** Of chat completions, in both its spellings. */
const OUTPUT_LIMITS = ["max_completion_tokens", "max_tokens"] as const;

export const openai: Dialect = {
  name: "openai",
  readFacts(value: unknown): CallFacts {
    const body = bodyObject(value);
    const options = body["stream_options"];
    // Which of two an upstream heeds is its own affair: what counts is the larger.
    const limits = OUTPUT_LIMITS.flatMap((name) => tokenLimit(body[name], name) ?? []);
    return {
      model: requiredModel(body),
      stream: streamFlag(body),
      maxOutputTokens: limits.length === 0 ? undefined : Math.max(...limits),
      choices: choiceCount(body["n"], "n"),
      wantsUsage: isObject(options) && options["include_usage"] === true,
    };
  },
  readUsage: (body) => (isObject(body) ? parseUsage(body["usage"]) : undefined),
  renderError,
  renderStreamError,
};
