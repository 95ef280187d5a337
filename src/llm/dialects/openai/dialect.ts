/** What the pipeline needs of OpenAI's wire format. */
import type { CallFacts, Dialect } from "../dialect.ts";
import { bodyObject, requiredModel, streamFlag, tokenLimit } from "../facts.ts";
import { isObject } from "../fields.ts";
import { renderError, renderStreamError } from "./errors.ts";
import { parseUsage } from "./usage.ts";

export const openai: Dialect = {
  name: "openai",
  readFacts(value: unknown): CallFacts {
    const body = bodyObject(value);
    const options = body["stream_options"];
    const limit =
      tokenLimit(body["max_completion_tokens"], "max_completion_tokens") ??
      tokenLimit(body["max_tokens"], "max_tokens") ??
      tokenLimit(body["max_output_tokens"], "max_output_tokens");
    return {
      model: requiredModel(body),
      stream: streamFlag(body),
      maxOutputTokens: limit,
      wantsUsage: isObject(options) && options["include_usage"] === true,
    };
  },
  readUsage: (body) => (isObject(body) ? parseUsage(body["usage"]) : undefined),
  renderError,
  renderStreamError,
};
