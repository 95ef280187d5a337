/** Anthropic's wire format, as far as the pipeline needs it. */
import type { BodyFields, CallFacts, Dialect, ReasoningBound } from "../dialect.ts";
import { requiredModel, streamFlag, tokenLimit } from "../facts.ts";
import { isObject } from "../fields.ts";
import { renderError, renderStreamError } from "./errors.ts";
import { parseUsage } from "./usage.ts";

export const anthropic: Dialect = {
  name: "anthropic",
  readFacts(body: BodyFields): CallFacts {
    return {
      model: requiredModel(body),
      stream: streamFlag(body),
      maxOutputTokens: tokenLimit(body.get("max_tokens"), "max_tokens"),
      choices: 1,
      reasoning: reasoningBound(body.get("thinking")),
      wantsUsage: true,
    };
  },
  readUsage: (body) => (isObject(body) ? parseUsage(body["usage"]) : undefined),
  renderError,
  renderStreamError,
};

/** `thinking`; without it, Claude does not think. */
function reasoningBound(thinking: unknown): ReasoningBound {
  if (!isObject(thinking) || thinking["type"] === "disabled") return { kind: "off" };
  const tokens = thinking["budget_tokens"];
  return typeof tokens === "number" ? { kind: "budget", tokens } : { kind: "open" };
}
