/**
 * A request of the Responses API into the model. Field names: `ResponseCreateParams` of the openai
 * SDK. The gateway stores nothing: what refers to something stored is refused.
 */
import { Fields } from "../fields.ts";
import { unsupported } from "../changes.ts";
import { type DropTable, withReasons } from "../leftovers.ts";
import type { ChatRequest, Leftover, NamedField } from "../model.ts";
import { parseEffort, parseFormat, parseUser } from "../openai/shared-fields.ts";
import { parseInput } from "./parse-input.ts";
import { parseToolChoice, parseTools } from "./tools.ts";

const NAMES: Readonly<Record<NamedField, string>> = {
  choices: "n",
  parallelToolCalls: "parallel_tool_calls",
  topK: "top_k",
  presencePenalty: "presence_penalty",
  frequencyPenalty: "frequency_penalty",
  seed: "seed",
  responseFormat: "text.format",
  reasoning: "reasoning.effort",
  temperature: "temperature",
  topP: "top_p",
  stop: "stop",
  toolChoice: "tool_choice",
  user: "safety_identifier",
};

const HINT = "a hint for OpenAI only; it does not change an answer";
const OWN = "only the Responses API has it";

/** Fields of this API that may be dropped wherever its requests are translated to; also in docs. */
export const RESPONSES_DROPS: DropTable = {
  client_metadata: HINT,
  prompt_cache_key: HINT,
  prompt_cache_retention: HINT,
  prompt_cache_options: HINT,
  service_tier: HINT,
  context_management: OWN,
  include: OWN,
  max_tool_calls: "it counts calls of OpenAI's own tools only",
  moderation: OWN,
  "reasoning.context": OWN,
  "reasoning.mode": OWN,
  store: "the gateway stores no answers",
  "text.verbosity": OWN,
  top_logprobs: "translated answers have no probabilities",
  truncation: OWN,
  "tools[]": "OpenAI runs this tool itself",
  "input[]": "OpenAI ran this tool itself",
};

export function parseRequest(body: unknown): ChatRequest {
  const fields = new Fields(body, "");
  const leftovers: Leftover[] = [];
  refuseStored(fields);
  // `metadata` is repeated in the answer, which is all that it is for.
  fields.ignore("model", "stream", "stream_options", "metadata");
  const instructions = fields.string("instructions");
  const turns = parseInput(fields, leftovers);
  const reasoning = fields.fields("reasoning");
  const text = fields.fields("text");
  const request: Omit<ChatRequest, "leftovers"> = {
    turns:
      instructions === undefined || instructions === ""
        ? turns
        : [
            {
              role: "system",
              content: [{ kind: "text", text: instructions }],
              param: "instructions",
            },
            ...turns,
          ],
    tools: parseTools(fields, leftovers),
    toolChoice: parseToolChoice(fields),
    parallelToolCalls: fields.boolean("parallel_tool_calls"),
    maxOutputTokens: fields.number("max_output_tokens"),
    temperature: fields.number("temperature"),
    topP: fields.number("top_p"),
    topK: undefined,
    presencePenalty: undefined,
    frequencyPenalty: undefined,
    seed: undefined,
    choices: undefined,
    stop: [],
    responseFormat: parseFormat(text?.fields("format"), leftovers, (format) => format),
    reasoning: parseEffort(reasoning, "effort"),
    showReasoning: parseSummary(reasoning),
    user: parseUser(fields),
    cache: undefined,
    names: NAMES,
  };
  ignoreDefaults(fields, text);
  reasoning?.rest(leftovers);
  text?.rest(leftovers);
  fields.rest(leftovers);
  return { ...request, leftovers: withReasons(leftovers, RESPONSES_DROPS) };
}

/**
 * Refuses fields that refer to something that only OpenAI stores, or ask it to go on without the
 * client.
 */
function refuseStored(fields: Fields): void {
  const stateless = "refers to what only OpenAI stores: send the whole conversation in input";
  const refused: readonly (readonly [string, string])[] = [
    ["previous_response_id", stateless],
    ["conversation", stateless],
    ["prompt", "refers to a prompt that only OpenAI stores: send its text in instructions"],
  ];
  for (const [key, why] of refused) if (fields.has(key)) throw unsupported(key, why);
  if (fields.boolean("background") === true)
    throw unsupported("background", "asks for an answer that is stored, which only OpenAI does");
}

/** Values that request what a translation does anyway. */
function ignoreDefaults(fields: Fields, text: Fields | undefined): void {
  const ignore = (from: Fields, key: string, isDefault: (value: unknown) => boolean): void => {
    if (from.has(key) && isDefault(from.peek(key))) from.ignore(key);
  };
  ignore(fields, "store", (value) => value === false);
  ignore(fields, "truncation", (value) => value === "disabled");
  ignore(fields, "top_logprobs", (value) => value === 0);
  ignore(fields, "service_tier", (value) => value === "auto" || value === "default");
  // Reasoning is always returned with its signature.
  ignore(
    fields,
    "include",
    (value) => Array.isArray(value) && value.every((one) => one === "reasoning.encrypted_content"),
  );
  if (text !== undefined) ignore(text, "verbosity", (value) => value === "medium");
}

/** A summary is asked for by its length, in two spellings. */
function parseSummary(reasoning: Fields | undefined): boolean | undefined {
  const older = reasoning?.string("generate_summary");
  const summary = reasoning?.string("summary") ?? older;
  return summary === undefined ? undefined : true;
}
