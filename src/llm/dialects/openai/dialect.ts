/** OpenAI's wire format, as far as the pipeline needs it. */
import type { BodyFields, CallFacts, Dialect, ReasoningBound } from "../dialect.ts";
import { choiceCount, requiredModel, streamFlag, tokenLimit } from "../facts.ts";
import { isObject } from "../fields.ts";
import { renderError, renderStreamError } from "./errors.ts";
import { parseUsage } from "./usage.ts";

/** Output limits of chat completions, in both spellings. */
const OUTPUT_LIMITS = ["max_completion_tokens", "max_tokens"] as const;

export const openai: Dialect = {
  name: "openai",
  readFacts(body: BodyFields): CallFacts {
    const options = body.get("stream_options");
    // It is up to the upstream which of two values it uses: the larger one counts.
    const limits = OUTPUT_LIMITS.flatMap((name) => tokenLimit(body.get(name), name) ?? []);
    return {
      model: requiredModel(body),
      stream: streamFlag(body),
      maxOutputTokens: limits.length === 0 ? undefined : Math.max(...limits),
      choices: choiceCount(body.get("n"), "n"),
      reasoning: reasoningBound(body.get("reasoning_effort")),
      wantsUsage: isObject(options) && options["include_usage"] === true,
    };
  },
  readUsage: (body) => (isObject(body) ? parseUsage(body["usage"]) : undefined),
  renderError,
  renderStreamError,
};

/** An effort is not a number of tokens: only `none` bounds it. */
function reasoningBound(effort: unknown): ReasoningBound {
  if (effort === undefined || effort === null) return { kind: "unspecified" };
  return effort === "none" ? { kind: "off" } : { kind: "open" };
}
