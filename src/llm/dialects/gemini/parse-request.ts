/**
 * A generateContent request into the model. Field names: `GenerateContentParameters` of
 * @google/genai.
 */
import { BadRequestError } from "../dialect.ts";
import { Fields } from "../fields.ts";
import type { JsonObject } from "../fields.ts";
import type {
  ChatRequest,
  Leftover,
  NamedField,
  Reasoning,
  ResponseFormat,
  TextBlock,
  Tool,
  ToolChoice,
} from "../model.ts";
import { parseContents } from "./parse-parts.ts";
import { toJsonSchema } from "./schema.ts";

const NAMES: Readonly<Record<NamedField, string>> = {
  choices: "generationConfig.candidateCount",
  parallelToolCalls: "toolConfig",
  topK: "generationConfig.topK",
  presencePenalty: "generationConfig.presencePenalty",
  frequencyPenalty: "generationConfig.frequencyPenalty",
  seed: "generationConfig.seed",
  responseFormat: "generationConfig.responseMimeType",
  reasoning: "generationConfig.thinkingConfig",
  temperature: "generationConfig.temperature",
  topP: "generationConfig.topP",
  stop: "generationConfig.stopSequences",
  toolChoice: "toolConfig.functionCallingConfig",
  user: "labels",
};

/** Content that Google holds. */
const ESSENTIAL = new Set(["cachedContent", "cached_content"]);
/** Another form of the answer. */
const ESSENTIAL_CONFIG = new Set(["responseModalities", "response_modalities"]);

export function parseRequest(body: unknown): ChatRequest {
  const fields = new Fields(body, "", { snake: true });
  const leftovers: Leftover[] = [];
  fields.ignore("model");
  const system = parseSystem(fields, leftovers);
  const config =
    fields.fields("generationConfig") ?? new Fields({}, "generationConfig", { snake: true });
  const thinking = parseThinking(config, leftovers);
  const request: ChatRequest = {
    turns: [
      ...(system.length > 0
        ? [{ role: "system", content: system, param: "systemInstruction" } as const]
        : []),
      ...parseContents(fields, leftovers),
    ],
    tools: parseTools(fields, leftovers),
    toolChoice: parseToolChoice(fields, leftovers),
    parallelToolCalls: undefined,
    maxOutputTokens: config.number("maxOutputTokens"),
    temperature: config.number("temperature"),
    topP: config.number("topP"),
    topK: config.number("topK"),
    presencePenalty: config.number("presencePenalty"),
    frequencyPenalty: config.number("frequencyPenalty"),
    seed: config.number("seed"),
    choices: config.number("candidateCount"),
    stop: config.strings("stopSequences") ?? [],
    responseFormat: parseResponseFormat(config),
    reasoning: thinking.reasoning,
    showReasoning: thinking.show,
    user: undefined,
    cache: undefined,
    leftovers,
    names: NAMES,
  };
  if (isTextOnly(config.peek("responseModalities"))) config.ignore("responseModalities");
  config.rest(leftovers, ESSENTIAL_CONFIG);
  fields.rest(leftovers, ESSENTIAL);
  return request;
}

function isTextOnly(modalities: unknown): boolean {
  return (
    Array.isArray(modalities) &&
    modalities.every((item) => typeof item === "string" && item.toUpperCase() === "TEXT")
  );
}

function parseSystem(fields: Fields, leftovers: Leftover[]): TextBlock[] {
  const system = fields.fields("systemInstruction");
  if (system === undefined) return [];
  system.ignore("role");
  const texts = system.each("parts", (part): TextBlock => {
    const block: TextBlock = { kind: "text", text: part.requiredString("text") };
    part.rest(leftovers);
    return block;
  });
  system.rest(leftovers);
  return texts;
}

function parseTools(fields: Fields, leftovers: Leftover[]): Tool[] {
  return fields
    .each("tools", (item) => {
      const tools = item.each("functionDeclarations", (declaration): Tool => {
        const schema = declaration.object("parameters");
        const jsonSchema = declaration.object("parametersJsonSchema");
        const tool: Tool = {
          name: declaration.requiredString("name"),
          description: declaration.string("description"),
          schema: jsonSchema ?? (schema === undefined ? undefined : toJsonSchema(schema)),
          strict: false,
        };
        declaration.rest(leftovers);
        return tool;
      });
      // Every other member is a tool that Google runs, e.g. `googleSearch: {}`.
      item.rest(leftovers, "all");
      return tools;
    })
    .flat();
}

function parseToolChoice(fields: Fields, leftovers: Leftover[]): ToolChoice | undefined {
  const config = fields.fields("toolConfig");
  const calling = config?.fields("functionCallingConfig");
  config?.rest(leftovers);
  if (calling === undefined) return undefined;
  const mode = calling.oneOf("mode", ["MODE_UNSPECIFIED", "AUTO", "ANY", "NONE", "VALIDATED"]);
  const only = calling.strings("allowedFunctionNames");
  calling.rest(leftovers);
  switch (mode) {
    case "NONE":
      return { kind: "none" };
    case "ANY":
      return { kind: "required", only };
    case undefined:
    case "MODE_UNSPECIFIED":
    case "AUTO":
    case "VALIDATED":
      return { kind: "auto", only };
  }
}

function parseResponseFormat(config: Fields): ResponseFormat | undefined {
  const type = config.string("responseMimeType");
  const schema = config.object("responseSchema");
  const jsonSchema: JsonObject | undefined =
    config.object("responseJsonSchema") ??
    (schema === undefined ? undefined : toJsonSchema(schema));
  if (type === undefined || type === "text/plain") return undefined;
  if (type !== "application/json") {
    const param = config.at("responseMimeType");
    throw new BadRequestError(
      `${param}: ${type} has no equivalent at this model's provider`,
      param,
      "unsupported_by_upstream",
    );
  }
  if (jsonSchema === undefined) return { kind: "json_object" };
  return {
    kind: "json_schema",
    name: "response",
    description: undefined,
    schema: jsonSchema,
    strict: undefined,
  };
}

const LEVELS = { MINIMAL: "minimal", LOW: "low", MEDIUM: "medium", HIGH: "high" } as const;

function parseThinking(
  config: Fields,
  leftovers: Leftover[],
): { reasoning: Reasoning | undefined; show: boolean | undefined } {
  const thinking = config.fields("thinkingConfig");
  if (thinking === undefined) return { reasoning: undefined, show: undefined };
  const show = thinking.boolean("includeThoughts");
  const level = thinking.oneOf("thinkingLevel", [
    "THINKING_LEVEL_UNSPECIFIED",
    "MINIMAL",
    "LOW",
    "MEDIUM",
    "HIGH",
  ]);
  const budget = thinking.number("thinkingBudget");
  thinking.rest(leftovers);
  if (level !== undefined && level !== "THINKING_LEVEL_UNSPECIFIED")
    return { reasoning: { kind: "effort", effort: LEVELS[level] }, show };
  if (budget === undefined)
    return { reasoning: show === true ? { kind: "auto" } : undefined, show };
  if (budget === 0) return { reasoning: { kind: "off" }, show };
  return { reasoning: budget < 0 ? { kind: "auto" } : { kind: "budget", tokens: budget }, show };
}
