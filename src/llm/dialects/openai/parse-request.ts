/**
 * A chat completions request into the model. Field names: `ChatCompletionCreateParams` of the
 * openai SDK.
 */
import { BadRequestError } from "../dialect.ts";
import { Fields } from "../fields.ts";
import type { ChatRequest, Leftover, NamedField, Tool, ToolChoice } from "../model.ts";
import { parseCacheControl } from "./cache-control.ts";
import { parseMessages } from "./parse-messages.ts";
import { parseEffort, parseFormat, parseUser } from "./shared-fields.ts";

const NAMES: Readonly<Record<NamedField, string>> = {
  choices: "n",
  parallelToolCalls: "parallel_tool_calls",
  topK: "top_k",
  presencePenalty: "presence_penalty",
  frequencyPenalty: "frequency_penalty",
  seed: "seed",
  responseFormat: "response_format",
  reasoning: "reasoning_effort",
  temperature: "temperature",
  topP: "top_p",
  stop: "stop",
  toolChoice: "tool_choice",
  user: "user",
};

/** Older forms of tools, tools that OpenAI runs, and other forms of the answer. */
const ESSENTIAL = new Set([
  "functions",
  "function_call",
  "web_search_options",
  "modalities",
  "audio",
]);

export function parseRequest(body: unknown): ChatRequest {
  const fields = new Fields(body, "");
  const leftovers: Leftover[] = [];
  fields.ignore("model", "stream", "stream_options");
  const request: ChatRequest = {
    turns: parseMessages(fields, leftovers),
    tools: parseTools(fields, leftovers),
    toolChoice: parseToolChoice(fields, leftovers),
    parallelToolCalls: fields.boolean("parallel_tool_calls"),
    maxOutputTokens: parseLimit(fields),
    temperature: fields.number("temperature"),
    topP: fields.number("top_p"),
    topK: fields.number("top_k"),
    presencePenalty: fields.number("presence_penalty"),
    frequencyPenalty: fields.number("frequency_penalty"),
    seed: fields.number("seed"),
    choices: fields.number("n"),
    stop: parseStop(fields),
    responseFormat: parseFormat(
      fields.fields("response_format"),
      leftovers,
      (format) => format.fields("json_schema") ?? format.fail("json_schema", "a JSON object"),
    ),
    reasoning: parseEffort(fields, "reasoning_effort"),
    showReasoning: undefined,
    user: parseUser(fields),
    cache: undefined,
    leftovers,
    names: NAMES,
  };
  ignoreDefaults(fields);
  fields.rest(leftovers, ESSENTIAL);
  return request;
}

/** `max_completion_tokens` is the newer name and wins. */
function parseLimit(fields: Fields): number | undefined {
  const older = fields.number("max_tokens");
  return fields.number("max_completion_tokens") ?? older;
}

function parseStop(fields: Fields): readonly string[] {
  const stop = fields.raw("stop");
  if (typeof stop === "string") return [stop];
  return fields.strings("stop") ?? [];
}

/** Values that request the default behaviour of every upstream may be dropped. */
function ignoreDefaults(fields: Fields): void {
  const defaults: readonly (readonly [string, (value: unknown) => boolean])[] = [
    ["logprobs", (value) => value === false],
    ["store", (value) => value === false],
    [
      "logit_bias",
      (value) => typeof value === "object" && Object.keys(value as object).length === 0,
    ],
    ["modalities", (value) => Array.isArray(value) && value.every((item) => item === "text")],
    ["verbosity", (value) => value === "medium"],
    ["service_tier", (value) => value === "auto" || value === "default"],
  ];
  for (const [key, isDefault] of defaults) {
    if (fields.has(key) && isDefault(fields.peek(key))) fields.ignore(key);
  }
}

function parseTools(fields: Fields, leftovers: Leftover[]): Tool[] {
  return fields.each("tools", (item) => {
    if (item.requiredString("type") !== "function") {
      throw new BadRequestError(
        `${item.at("type")} must be "function" for this model's provider`,
        item.at("type"),
        "unsupported_by_upstream",
      );
    }
    const definition = item.fields("function") ?? item.fail("function", "a JSON object");
    const cacheControl = item.fields("cache_control") ?? definition.fields("cache_control");
    const tool: Tool = {
      name: definition.requiredString("name"),
      description: definition.string("description"),
      schema: definition.object("parameters"),
      strict: definition.boolean("strict") ?? false,
      cache: cacheControl === undefined ? undefined : parseCacheControl(cacheControl),
    };
    definition.rest(leftovers);
    item.rest(leftovers);
    return tool;
  });
}

function parseToolChoice(fields: Fields, leftovers: Leftover[]): ToolChoice | undefined {
  const choice = fields.raw("tool_choice");
  if (choice === undefined) return undefined;
  if (choice === "none") return { kind: "none" };
  if (choice === "auto") return { kind: "auto", only: undefined };
  if (choice === "required") return { kind: "required", only: undefined };
  const object = fields.fields("tool_choice");
  if (object === undefined) return undefined;
  const type = object.oneOf("type", ["function", "allowed_tools"]);
  if (type === "function") {
    const named = object.fields("function") ?? object.fail("function", "a JSON object");
    const name = named.requiredString("name");
    named.rest(leftovers);
    object.rest(leftovers);
    return { kind: "required", only: [name] };
  }
  const allowed = object.fields("allowed_tools") ?? object.fail("allowed_tools", "a JSON object");
  const kind =
    allowed.oneOf("mode", ["auto", "required"]) ?? allowed.fail("mode", "auto or required");
  const only = allowed.each("tools", (tool) => {
    tool.oneOf("type", ["function"]);
    const named = tool.fields("function") ?? tool.fail("function", "a JSON object");
    return named.requiredString("name");
  });
  allowed.rest(leftovers);
  object.rest(leftovers);
  return { kind, only };
}
