/** Anthropic's wire format: messages. */
import type { Dialect } from "../contract.ts";
import type { BodyFields, CallFacts, ReasoningBound } from "../dialect.ts";
import { requiredModel, streamFlag, tokenLimit } from "../facts.ts";
import { isObject } from "../fields.ts";
import { MODEL_CREATED } from "../models.ts";
import { FOREIGN_MARK, isForeign, withoutForeignItems } from "../signature.ts";
import { parseError, renderError, renderStreamError } from "./errors.ts";
import { parseRequest } from "./parse-request.ts";
import { parseResponse } from "./parse-response.ts";
import { AnthropicStreamParser } from "./parse-stream.ts";
import { AnthropicProbe } from "./probe.ts";
import { serialiseRequest } from "./serialise-request.ts";
import { serialiseResponse } from "./serialise-response.ts";
import { AnthropicStreamSerialiser } from "./serialise-stream.ts";
import { parseUsage } from "./usage.ts";
import { readAnswerTexts, readStreamedTexts, readTexts } from "./texts.ts";

/**
 * Anthropic's `anthropic-version` if the client sent none (platform.claude.com/docs, "Versions").
 */
const ANTHROPIC_VERSION = "2023-06-01";

/** Types of the tools that the client runs itself. */
const CLIENT_TOOLS = /^(custom|(bash|text_editor|computer|memory)_\d{8})$/;

export const anthropic: Dialect = {
  name: "anthropic",
  modelIsInBody: true,
  usageIsAskedFor: false,
  streamTotals: "comment",
  foreignReasoning: {
    mark: Buffer.from(`"${FOREIGN_MARK}`),
    list: "messages",
    strip: (message) =>
      withoutForeignItems(
        message,
        "content",
        ({ signature, data }) =>
          isForeign(signature, FOREIGN_MARK) || isForeign(data, FOREIGN_MARK),
      ),
  },
  upstreamHeaders: (native) => [
    ["anthropic-version", native?.anthropicVersion ?? ANTHROPIC_VERSION],
    ...(native?.anthropicBeta === undefined
      ? []
      : [["anthropic-beta", native.anthropicBeta] as const]),
  ],
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
  outputLimitField: () => "max_tokens",
  readUsage: (body) => (isObject(body) ? parseUsage(body["usage"]) : undefined),
  isClientTool(tool) {
    const type = tool["type"] ?? "custom";
    return typeof type === "string" && CLIENT_TOOLS.test(type);
  },
  parseError,
  isNativeError: () => true,
  renderError,
  renderStreamError,
  renderModel,
  renderModels: (refs) => ({
    data: refs.map(renderModel),
    has_more: false,
    first_id: refs[0] ?? null,
    last_id: refs.at(-1) ?? null,
  }),
  parseRequest,
  serialiseRequest,
  parseResponse,
  serialiseResponse,
  streamParser: () => new AnthropicStreamParser(),
  streamSerialiser: (identity) => new AnthropicStreamSerialiser(identity),
  readTexts,
  readAnswerTexts,
  readStreamedTexts,
  probe: () => new AnthropicProbe(),
};

function renderModel(ref: string): object {
  const created = new Date(MODEL_CREATED * 1000).toISOString();
  return { type: "model", id: ref, display_name: ref, created_at: created };
}

/** `thinking`; without it, Claude does not think. */
function reasoningBound(thinking: unknown): ReasoningBound {
  if (!isObject(thinking) || thinking["type"] === "disabled") return { kind: "off" };
  const tokens = thinking["budget_tokens"];
  return typeof tokens === "number" ? { kind: "budget", tokens } : { kind: "open" };
}
