/**
 * Gemini's wire format: generateContent. The path, not the body, names the model and requests a
 * stream.
 */
import type { Dialect } from "../contract.ts";
import type { BodyFields, CallFacts, ReasoningBound } from "../dialect.ts";
import { choiceCount, largestLimit } from "../facts.ts";
import { fold, folded, isObject } from "../fields.ts";
import { FOREIGN_MARK_BASE64, isForeign, withoutForeignItems } from "../signature.ts";
import { parseError, renderError, renderStreamError } from "./errors.ts";
import { parseRequest } from "./parse-request.ts";
import { parseResponse } from "./parse-response.ts";
import { GeminiStreamParser } from "./parse-stream.ts";
import { GeminiProbe } from "./probe.ts";
import { serialiseRequest } from "./serialise-request.ts";
import { serialiseResponse } from "./serialise-response.ts";
import { GeminiStreamSerialiser } from "./serialise-stream.ts";
import { parseUsage } from "./usage.ts";
import { readAnswerTexts, readStreamedTexts, readTexts } from "./texts.ts";

/** Members of a tool whose functions the client runs itself. */
const CLIENT_TOOLS = folded("function_declarations", "computer_use");

export const gemini: Dialect = {
  name: "gemini",
  modelIsInBody: false,
  usageIsAskedFor: false,
  streamParameter: { name: "alt", value: "sse" },
  // Google's SDK fails on a comment: its clients only have the last chunk's `usageMetadata`.
  streamTotals: "member",
  foreignReasoning: {
    mark: Buffer.from(`"${FOREIGN_MARK_BASE64}`),
    list: "contents",
    strip: (message) =>
      withoutForeignItems(message, "parts", (part) =>
        isForeign(part["thoughtSignature"] ?? part["thought_signature"], FOREIGN_MARK_BASE64),
      ),
  },
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
  outputLimitField: () => "generationConfig",
  readUsage: (body) => (isObject(body) ? parseUsage(body["usageMetadata"]) : undefined),
  isClientTool: (tool) => Object.keys(tool).every((key) => CLIENT_TOOLS.has(fold(key))),
  parseError,
  isNativeError: () => true,
  renderError,
  renderStreamError,
  renderModel,
  renderModels: (refs) => ({ models: refs.map(renderModel) }),
  parseRequest,
  serialiseRequest,
  parseResponse,
  serialiseResponse,
  streamParser: (id) => new GeminiStreamParser(id),
  streamSerialiser: (identity) => new GeminiStreamSerialiser(identity),
  readTexts,
  readAnswerTexts,
  readStreamedTexts,
  probe: () => new GeminiProbe(),
};

function renderModel(ref: string): object {
  return {
    name: `models/${ref}`,
    displayName: ref,
    supportedGenerationMethods: ["generateContent", "streamGenerateContent"],
  };
}

/** Thinking budgets: 0 disables thinking, a negative one leaves the amount to the model. */
function reasoningBound(budgets: readonly unknown[]): ReasoningBound {
  const tokens = budgets.filter((budget) => typeof budget === "number");
  if (tokens.length === 0) return { kind: "unspecified" };
  const most = Math.max(...tokens);
  if (tokens.some((budget) => budget < 0)) return { kind: "open" };
  return most === 0 ? { kind: "off" } : { kind: "budget", tokens: most };
}
