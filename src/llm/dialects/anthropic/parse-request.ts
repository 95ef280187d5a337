/** A messages request into the model. Field names: `MessageCreateParams` of @anthropic-ai/sdk. */
import { BadRequestError } from "../dialect.ts";
import { Fields } from "../fields.ts";
import type {
  ChatRequest,
  Effort,
  Leftover,
  NamedField,
  Reasoning,
  ResponseFormat,
  TextBlock,
  Tool,
  ToolChoice,
  Turn,
} from "../model.ts";
import { parseCache, parseContent, parseSystem } from "./parse-blocks.ts";

const NAMES: Readonly<Record<NamedField, string>> = {
  choices: "n",
  parallelToolCalls: "tool_choice.disable_parallel_tool_use",
  topK: "top_k",
  presencePenalty: "presence_penalty",
  frequencyPenalty: "frequency_penalty",
  seed: "seed",
  responseFormat: "output_config.format",
  reasoning: "thinking",
  temperature: "temperature",
  topP: "top_p",
  stop: "stop_sequences",
  toolChoice: "tool_choice",
  user: "metadata.user_id",
};

/** Tools that Anthropic runs. */
const ESSENTIAL = new Set(["mcp_servers", "container"]);

export function parseRequest(body: unknown): ChatRequest {
  const fields = new Fields(body, "");
  const leftovers: Leftover[] = [];
  fields.ignore("model", "stream");
  const system = parseSystem(fields, leftovers);
  const choice = parseToolChoice(fields, leftovers);
  const output = parseOutputConfig(fields, leftovers);
  const thinking = parseThinking(fields, output.effort, leftovers);
  const metadata = fields.fields("metadata");
  const user = metadata?.string("user_id");
  metadata?.rest(leftovers);
  const request: ChatRequest = {
    turns: [...systemTurn(system), ...parseMessages(fields, leftovers)],
    tools: parseTools(fields, leftovers),
    toolChoice: choice.choice,
    parallelToolCalls: choice.parallel,
    maxOutputTokens: fields.number("max_tokens"),
    temperature: fields.number("temperature"),
    topP: fields.number("top_p"),
    topK: fields.number("top_k"),
    presencePenalty: undefined,
    frequencyPenalty: undefined,
    seed: undefined,
    choices: undefined,
    stop: fields.strings("stop_sequences") ?? [],
    responseFormat: output.format,
    reasoning: thinking.reasoning,
    showReasoning: thinking.show,
    user,
    cache: parseCache(fields),
    leftovers,
    names: NAMES,
  };
  if (fields.peek("service_tier") === "auto") fields.ignore("service_tier");
  if (fields.peek("speed") === "standard") fields.ignore("speed");
  fields.rest(leftovers, ESSENTIAL);
  return request;
}

function systemTurn(content: readonly TextBlock[]): Turn[] {
  return content.length === 0 ? [] : [{ role: "system", content, param: "system" }];
}

function parseMessages(fields: Fields, leftovers: Leftover[]): Turn[] {
  if (!fields.has("messages")) fields.fail("messages", "a list");
  return fields.each("messages", (message) => {
    const role =
      message.oneOf("role", ["user", "assistant", "system"]) ??
      message.fail("role", "user, assistant or system");
    const turn: Turn = { role, content: parseContent(message, leftovers), param: message.path };
    message.rest(leftovers);
    return turn;
  });
}

function parseTools(fields: Fields, leftovers: Leftover[]): Tool[] {
  return fields.each("tools", (item) => {
    const type = item.string("type") ?? "custom";
    if (type !== "custom") {
      throw new BadRequestError(
        `${item.at("type")}: the server tool ${type} runs at Anthropic only`,
        item.at("type"),
        "unsupported_by_upstream",
      );
    }
    const tool: Tool = {
      name: item.requiredString("name"),
      description: item.string("description"),
      schema: item.object("input_schema"),
      strict: item.boolean("strict") ?? false,
      cache: parseCache(item),
    };
    // The split of the arguments into deltas does not affect the answer.
    item.ignore("eager_input_streaming");
    if (item.peek("defer_loading") === false) item.ignore("defer_loading");
    item.rest(leftovers);
    return tool;
  });
}

function parseToolChoice(
  fields: Fields,
  leftovers: Leftover[],
): { choice: ToolChoice | undefined; parallel: boolean | undefined } {
  const object = fields.fields("tool_choice");
  if (object === undefined) return { choice: undefined, parallel: undefined };
  const type =
    object.oneOf("type", ["auto", "any", "tool", "none"]) ??
    object.fail("type", "one of auto, any, tool, none");
  const single = object.boolean("disable_parallel_tool_use");
  const choice = choiceOf(type, object);
  object.rest(leftovers);
  return { choice, parallel: single === undefined ? undefined : !single };
}

function choiceOf(type: "auto" | "any" | "tool" | "none", object: Fields): ToolChoice {
  switch (type) {
    case "none":
      return { kind: "none" };
    case "auto":
      return { kind: "auto", only: undefined };
    case "any":
      return { kind: "required", only: undefined };
    case "tool":
      return { kind: "required", only: [object.requiredString("name")] };
  }
}

interface Output {
  readonly effort: Effort | undefined;
  readonly format: ResponseFormat | undefined;
}

function parseOutputConfig(fields: Fields, leftovers: Leftover[]): Output {
  const config = fields.fields("output_config");
  if (config === undefined) return { effort: undefined, format: undefined };
  const effort = config.oneOf("effort", ["low", "medium", "high", "xhigh", "max"]);
  const format = config.fields("format");
  let parsed: ResponseFormat | undefined;
  if (format !== undefined) {
    format.oneOf("type", ["json_schema"]);
    const schema = format.object("schema") ?? format.fail("schema", "a JSON schema");
    parsed = {
      kind: "json_schema",
      name: "response",
      description: undefined,
      schema,
      strict: true,
    };
    format.rest(leftovers);
  }
  config.rest(leftovers);
  return { effort, format: parsed };
}

interface ParsedThinking {
  readonly reasoning: Reasoning | undefined;
  readonly show: boolean | undefined;
}

/** An effort is more specific if thinking is adaptive or not set; a budget is exact. */
function parseThinking(
  fields: Fields,
  effort: Effort | undefined,
  leftovers: Leftover[],
): ParsedThinking {
  const byEffort: Reasoning | undefined =
    effort === undefined ? undefined : { kind: "effort", effort };
  const thinking = fields.fields("thinking");
  if (thinking === undefined) return { reasoning: byEffort, show: undefined };
  const types = ["enabled", "disabled", "adaptive", "between_tools"] as const;
  const type = thinking.oneOf("type", types) ?? thinking.fail("type", `one of ${types.join(", ")}`);
  const display = thinking.oneOf("display", ["summarized", "omitted"]);
  const show = display === undefined ? undefined : display === "summarized";
  const reasoning = reasoningOf(type, thinking, byEffort);
  thinking.rest(leftovers);
  return { reasoning, show };
}

function reasoningOf(
  type: "enabled" | "disabled" | "adaptive" | "between_tools",
  thinking: Fields,
  byEffort: Reasoning | undefined,
): Reasoning {
  switch (type) {
    case "disabled":
      return { kind: "off" };
    case "enabled":
      return {
        kind: "budget",
        tokens: thinking.number("budget_tokens") ?? thinking.fail("budget_tokens", "a number"),
      };
    case "adaptive":
    case "between_tools":
      return byEffort ?? { kind: "auto" };
  }
}
