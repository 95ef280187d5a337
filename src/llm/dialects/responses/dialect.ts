/** OpenAI's Responses API, as its clients use it. */
import type { ClientDialect } from "../contract.ts";
import type { BodyFields, CallFacts, ReasoningBound } from "../dialect.ts";
import { choiceCount, requiredModel, streamFlag, tokenLimit } from "../facts.ts";
import { isObject } from "../fields.ts";
import { openai } from "../openai/dialect.ts";
import { isNativeError, parseError, renderError } from "../openai/errors.ts";
import { FOREIGN_MARK, isForeign } from "../signature.ts";
import { readEcho } from "./echo.ts";
import { renderStreamError } from "./errors.ts";
import { parseRequest } from "./parse-request.ts";
import { ResponsesProbe } from "./probe.ts";
import { serialiseResponse } from "./serialise-response.ts";
import { ResponsesStreamSerialiser } from "./serialise-stream.ts";
import { parseUsage } from "./usage.ts";
import { readAnswerTexts, readStreamedTexts, readTexts } from "./texts.ts";

export const responses: ClientDialect = {
  name: "responses",
  modelIsInBody: true,
  usageIsAskedFor: false,
  streamTotals: "comment",
  foreignReasoning: {
    mark: Buffer.from(`"${FOREIGN_MARK}`),
    list: "input",
    strip: (item) => (isForeign(item["encrypted_content"], FOREIGN_MARK) ? undefined : item),
  },
  readFacts(body: BodyFields): CallFacts {
    return {
      model: requiredModel(body),
      stream: streamFlag(body),
      maxOutputTokens: tokenLimit(body.get("max_output_tokens"), "max_output_tokens"),
      choices: choiceCount(body.get("n"), "n"),
      reasoning: reasoningBound(body.get("reasoning")),
      wantsUsage: true,
    };
  },
  outputLimitField: () => "max_output_tokens",
  isClientTool: (tool) => openai.isClientTool(tool),
  readUsage: (body) => (isObject(body) ? parseUsage(body["usage"]) : undefined),
  parseError,
  isNativeError,
  renderError,
  renderModel: (ref) => openai.renderModel(ref),
  renderModels: (refs) => openai.renderModels(refs),
  renderStreamError,
  parseRequest,
  readEcho,
  serialiseResponse,
  streamSerialiser: (identity) => new ResponsesStreamSerialiser(identity),
  readTexts,
  readAnswerTexts,
  readStreamedTexts,
  probe: () => new ResponsesProbe(),
};

/** An effort is not a number of tokens: only `none` bounds it. */
function reasoningBound(reasoning: unknown): ReasoningBound {
  const effort = isObject(reasoning) ? reasoning["effort"] : undefined;
  if (effort === undefined || effort === null) return { kind: "unspecified" };
  return effort === "none" ? { kind: "off" } : { kind: "open" };
}
