/** OpenAI's wire format: chat completions. */
import type { Dialect } from "../contract.ts";
import type { BodyFields, CallFacts, ReasoningBound } from "../dialect.ts";
import { choiceCount, requiredModel, streamFlag, tokenLimit } from "../facts.ts";
import { isObject, type JsonObject } from "../fields.ts";
import { MODEL_CREATED } from "../models.ts";
import { isNativeError, parseError, renderError, renderStreamError } from "./errors.ts";
import { parseRequest } from "./parse-request.ts";
import { parseResponse } from "./parse-response.ts";
import { OpenaiStreamParser } from "./parse-stream.ts";
import { OpenaiProbe } from "./probe.ts";
import { serialiseRequest } from "./serialise-request.ts";
import { serialiseResponse } from "./serialise-response.ts";
import { OpenaiStreamSerialiser } from "./serialise-stream.ts";
import { parseUsage } from "./usage.ts";
import { readAnswerTexts, readStreamedTexts, readTexts } from "./texts.ts";

/** Output limits of chat completions, in both spellings. */
const OUTPUT_LIMITS = ["max_completion_tokens", "max_tokens"] as const;

/** Types of the tools that the client runs itself. */
const CLIENT_TOOLS =
  /^(function|custom|local_shell|apply_patch|computer|computer_use_preview|namespace)$/;

export const openai: Dialect = {
  name: "openai",
  modelIsInBody: true,
  usageIsAskedFor: true,
  streamTotals: "comment",
  foreignReasoning: { mark: Buffer.from('"reasoning_details"'), list: "messages", strip },
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
  outputLimitField(kind) {
    // OpenAI's newer models refuse `max_tokens`; other servers may support nothing else.
    const isOpenai = kind === "openai" || kind === "azure-openai";
    return isOpenai ? "max_completion_tokens" : "max_tokens";
  },
  readUsage: (body) => (isObject(body) ? parseUsage(body["usage"]) : undefined),
  isClientTool(tool) {
    const type = tool["type"] ?? "function";
    return typeof type === "string" && CLIENT_TOOLS.test(type);
  },
  parseError,
  isNativeError,
  renderError,
  renderStreamError,
  renderModel,
  renderModels: (refs) => ({ object: "list", data: refs.map(renderModel) }),
  parseRequest,
  serialiseRequest,
  parseResponse,
  serialiseResponse,
  streamParser: (id) => new OpenaiStreamParser(id),
  streamSerialiser: (identity, wantsUsage) => new OpenaiStreamSerialiser(identity, wantsUsage),
  readTexts,
  readAnswerTexts,
  readStreamedTexts,
  probe: (wantsUsage) => new OpenaiProbe(wantsUsage),
};

function renderModel(ref: string): object {
  return { id: ref, object: "model", created: MODEL_CREATED, owned_by: ref.split("/")[0] };
}

/** Removes reasoning details in the format of another vendor. */
function strip(message: JsonObject): JsonObject {
  const details = message["reasoning_details"];
  if (!Array.isArray(details)) return message;
  const own = details.filter(
    (detail: unknown) => !isObject(detail) || !isForeignFormat(detail["format"]),
  );
  if (own.length === details.length) return message;
  const { reasoning_details: _, reasoning_content: __, ...rest } = message;
  return own.length === 0 ? rest : { ...rest, reasoning_details: own };
}

function isForeignFormat(format: unknown): boolean {
  return format === "anthropic-claude-v1" || format === "google-gemini-v1";
}

/** An effort is not a number of tokens: only `none` bounds it. */
function reasoningBound(effort: unknown): ReasoningBound {
  if (effort === undefined || effort === null) return { kind: "unspecified" };
  return effort === "none" ? { kind: "off" } : { kind: "open" };
}
