/** What the pipeline needs of Anthropic's wire format. */
import type { CallFacts, Dialect } from "../dialect.ts";
import { bodyObject, requiredModel, streamFlag, tokenLimit } from "../facts.ts";
import { isObject } from "../fields.ts";
import { renderError, renderStreamError } from "./errors.ts";
import { parseUsage } from "./usage.ts";

export const anthropic: Dialect = {
  name: "anthropic",
  readFacts(value: unknown): CallFacts {
    const body = bodyObject(value);
    return {
      model: requiredModel(body),
      stream: streamFlag(body),
      maxOutputTokens: tokenLimit(body["max_tokens"], "max_tokens"),
      choices: 1,
      wantsUsage: true,
    };
  },
  readUsage: (body) => (isObject(body) ? parseUsage(body["usage"]) : undefined),
  renderError,
  renderStreamError,
};
