/**
 * The model into a chat completions request. Field names: `ChatCompletionCreateParams` of the
 * openai SDK.
 */
import type { DropTable } from "../leftovers.ts";
import { settleLeftovers } from "../leftovers.ts";
import { type ChangeLog, unsupported } from "../changes.ts";
import type { ChatRequest, Reasoning, ResponseFormat, Tool, ToolChoice } from "../model.ts";
import { effortOf } from "../reasoning.ts";
import type { TranslationTarget } from "../target.ts";
import { takesSampling } from "./generation.ts";
import { serialiseMessages } from "./serialise-messages.ts";

export const OPENAI_DROPS: DropTable = {};

export function serialiseRequest(
  request: ChatRequest,
  { model, stream, changes }: TranslationTarget,
): object {
  settleLeftovers(request.leftovers, OPENAI_DROPS, "OpenAI", changes);
  if (request.topK !== undefined)
    changes.lose(request.names.topK ?? "top_k", "has no equivalent at OpenAI");
  if (hasCacheMarks(request))
    changes.note("prompt-cache markers dropped: OpenAI caches prompts by itself");
  return {
    model,
    messages: serialiseMessages(request.turns, changes),
    ...(request.tools.length > 0 ? { tools: request.tools.map(serialiseTool) } : {}),
    ...(request.toolChoice === undefined || request.tools.length === 0
      ? {}
      : { tool_choice: serialiseToolChoice(request.toolChoice) }),
    ...(request.parallelToolCalls === undefined || request.tools.length === 0
      ? {}
      : { parallel_tool_calls: request.parallelToolCalls }),
    ...(request.maxOutputTokens === undefined
      ? {}
      : { max_completion_tokens: request.maxOutputTokens }),
    ...serialiseSampling(request, model, changes),
    ...(request.seed === undefined ? {} : { seed: request.seed }),
    ...(request.choices === undefined || request.choices === 1
      ? {}
      : { n: refuseChoices(request) }),
    ...(request.stop.length > 0 ? { stop: request.stop } : {}),
    ...(request.responseFormat === undefined
      ? {}
      : { response_format: serialiseResponseFormat(request.responseFormat) }),
    ...serialiseReasoning(request.reasoning, changes),
    ...serialiseUser(request, changes),
    ...(stream ? { stream: true, stream_options: { include_usage: true } } : {}),
  };
}

function serialiseSampling(request: ChatRequest, model: string, changes: ChangeLog): object {
  const all = [
    ["temperature", "temperature", 1],
    ["topP", "top_p", 1],
    ["presencePenalty", "presence_penalty", 0],
    ["frequencyPenalty", "frequency_penalty", 0],
  ] as const;
  const isTaken = takesSampling(model, request.reasoning);
  const sampling: Record<string, number> = {};
  for (const [field, name, usual] of all) {
    const value = request[field];
    if (value === undefined) continue;
    if (isTaken) sampling[name] = value;
    else if (value !== usual) {
      changes.lose(request.names[field] ?? name, `is not taken by ${model} while it reasons`);
    }
  }
  return sampling;
}

function refuseChoices(request: ChatRequest): never {
  throw unsupported(request.names.choices ?? "n", "must be 1 where the answer is translated");
}

/** OpenAI refuses longer identifiers, which Anthropic's clients may send. */
const LONGEST_USER = 64;

function serialiseUser({ user, names }: ChatRequest, changes: ChangeLog): object {
  if (user === undefined) return {};
  if (user.length <= LONGEST_USER) return { safety_identifier: user };
  changes.drop(
    names.user ?? "user",
    `longer than the ${LONGEST_USER} characters that OpenAI takes; it does not change an answer`,
  );
  return {};
}

function hasCacheMarks({ cache, turns, tools }: ChatRequest): boolean {
  return (
    cache !== undefined ||
    tools.some((tool) => tool.cache !== undefined) ||
    turns.some(({ content }) =>
      content.some((block) => "cache" in block && block.cache !== undefined),
    )
  );
}

function serialiseTool(tool: Tool): object {
  return {
    type: "function",
    function: {
      name: tool.name,
      ...(tool.description === undefined ? {} : { description: tool.description }),
      ...(tool.schema === undefined ? {} : { parameters: withProperties(tool.schema) }),
      ...(tool.strict ? { strict: true } : {}),
    },
  };
}

/**
 * OpenAI refuses an object schema without `properties`, which other vendors accept for no
 * arguments.
 */
function withProperties(schema: Readonly<Record<string, unknown>>): object {
  return schema["type"] === "object" && schema["properties"] === undefined
    ? { ...schema, properties: {} }
    : schema;
}

function serialiseToolChoice(choice: ToolChoice): unknown {
  if (choice.kind === "none") return "none";
  if (choice.only === undefined) return choice.kind;
  const [first, ...others] = choice.only;
  if (choice.kind === "required" && first !== undefined && others.length === 0)
    return { type: "function", function: { name: first } };
  const tools = choice.only.map((name) => ({ type: "function", function: { name } }));
  return { type: "allowed_tools", allowed_tools: { mode: choice.kind, tools } };
}

function serialiseResponseFormat(format: ResponseFormat): object {
  if (format.kind === "json_object") return { type: "json_object" };
  return {
    type: "json_schema",
    json_schema: {
      name: format.name,
      ...(format.description === undefined ? {} : { description: format.description }),
      schema: format.schema,
      ...(format.strict === undefined ? {} : { strict: format.strict }),
    },
  };
}

/**
 * Models that do not reason refuse `reasoning_effort`, so it is sent only on explicit request. "No
 * thinking" is Anthropic's default, which its clients may send explicitly: it also keeps the
 * model's default.
 */
function serialiseReasoning(reasoning: Reasoning | undefined, changes: ChangeLog): object {
  switch (reasoning?.kind) {
    case undefined:
    case "auto":
      return {};
    case "off":
      changes.note(
        "thinking turned off: the model's default is used, because most of OpenAI's models " +
          "have no such parameter",
      );
      return {};
    case "effort":
      return { reasoning_effort: reasoning.effort };
    case "budget":
      return { reasoning_effort: effortOf(reasoning.tokens) };
  }
}
