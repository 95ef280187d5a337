/** What the pipeline needs of Gemini's wire format. The path, not the body, names the model and asks for a stream. */
import type { CallFacts, Dialect } from "../dialect.ts";
import { bodyObject, tokenLimit } from "../facts.ts";
import { isObject } from "../fields.ts";
import { renderError, renderStreamError } from "./errors.ts";
import { parseUsage } from "./usage.ts";

export const gemini: Dialect = {
  name: "gemini",
  readFacts(value: unknown): CallFacts {
    const body = bodyObject(value);
    const config = body["generationConfig"] ?? body["generation_config"];
    const limit = isObject(config) ? (config["maxOutputTokens"] ?? config["max_output_tokens"]) : undefined;
    return {
      model: undefined,
      stream: false,
      maxOutputTokens: tokenLimit(limit, "generationConfig.maxOutputTokens"),
      wantsUsage: true,
    };
  },
  readUsage: (body) => (isObject(body) ? parseUsage(body["usageMetadata"]) : undefined),
  renderError,
  renderStreamError,
};
