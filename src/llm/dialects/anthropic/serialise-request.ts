/** The model into a messages request. Field names: `MessageCreateParams` of @anthropic-ai/sdk. */
import type { ChatRequest, Reasoning, Tool, ToolChoice } from "../model.ts";
import type { DropTable } from "../leftovers.ts";
import { settleLeftovers } from "../leftovers.ts";
import { type ChangeLog, unsupported } from "../changes.ts";
import { budgetOf } from "../reasoning.ts";
import type { TranslationTarget } from "../target.ts";
import { toDialogue, withoutPrefill } from "../turns.ts";
import type { Dialogue } from "../turns.ts";
import { thinksAdaptively } from "./generation.ts";
import { serialiseSampling } from "./serialise-sampling.ts";
import { cacheControl, serialiseBlocks } from "./serialise-blocks.ts";

/**
 * Anthropic requires `max_tokens`; other vendors default to the model's own maximum, which only
 * they know.
 */
export const DEFAULT_MAX_TOKENS = 8192;
const LEAST_BUDGET = 1024;

const IGNORED = "Anthropic's OpenAI-compatible endpoint ignores it";

/** https://docs.claude.com/en/api/openai-sdk#detailed-openai-compatible-api-support */
export const ANTHROPIC_DROPS: DropTable = {
  logprobs: IGNORED,
  top_logprobs: IGNORED,
  metadata: IGNORED,
  prediction: IGNORED,
  service_tier: IGNORED,
  store: IGNORED,
  logit_bias: IGNORED,
  "messages[].name": IGNORED,
  prompt_cache_key: "a hint for OpenAI's cache only; it does not change an answer",
  prompt_cache_retention: "a hint for OpenAI's cache only; it does not change an answer",
  prompt_cache_options: "a hint for OpenAI's cache only; it does not change an answer",
};

export function serialiseRequest(
  request: ChatRequest,
  { model, stream, changes }: TranslationTarget,
): object {
  settleLeftovers(request.leftovers, ANTHROPIC_DROPS, "Anthropic", changes);
  refuse(request);
  for (const field of ["presencePenalty", "frequencyPenalty", "seed"] as const) {
    if (request[field] !== undefined && request[field] !== 0)
      changes.drop(request.names[field] ?? field, IGNORED);
  }
  const dialogue = toDialogue(request.turns);
  if (dialogue.hoisted)
    changes.note("system messages moved to the front: Anthropic takes one system prompt");
  const messages = (
    thinksAdaptively(model) ? withoutPrefill(dialogue.turns, changes) : dialogue.turns
  )
    .map(({ role, content }) => ({ role, content: serialiseBlocks(content, changes) }))
    .filter(({ content }) => content.length > 0);
  const thinking = serialiseReasoning(request, dialogue.turns, model, changes);
  const tools = chosenTools(request);
  return {
    model,
    max_tokens: request.maxOutputTokens ?? DEFAULT_MAX_TOKENS + thinking.budget,
    ...(dialogue.system.length > 0 ? { system: serialiseBlocks(dialogue.system, changes) } : {}),
    messages,
    ...(tools.length > 0 ? { tools: tools.map(serialiseTool) } : {}),
    ...serialiseToolChoice(request, tools),
    ...(request.stop.length > 0 ? { stop_sequences: serialiseStop(request, changes) } : {}),
    ...serialiseSampling(request, model, thinking.thinks, changes),
    ...(thinking.thinking === undefined ? {} : { thinking: thinking.thinking }),
    ...outputConfig(request, thinking.effort),
    ...(request.user === undefined ? {} : { metadata: { user_id: request.user } }),
    ...(request.cache === undefined ? {} : { cache_control: cacheControl(request.cache) }),
    ...(stream ? { stream: true } : {}),
  };
}

function refuse(request: ChatRequest): void {
  if (request.choices !== undefined && request.choices !== 1) {
    throw unsupported(request.names.choices ?? "n", "must be 1: Anthropic gives one answer");
  }
  if (request.responseFormat?.kind === "json_object") {
    throw unsupported(
      request.names.responseFormat ?? "response_format",
      "must be a JSON schema: Anthropic has no schema-less JSON mode",
    );
  }
}

/**
 * Anthropic refuses stop sequences of only white space; its OpenAI-compatible endpoint omits them.
 */
function serialiseStop(request: ChatRequest, changes: ChangeLog): readonly string[] {
  const usable = request.stop.filter((sequence) => sequence.trim() !== "");
  if (usable.length < request.stop.length)
    changes.note(
      "stop sequences of white space dropped: Anthropic's OpenAI-compatible endpoint ignores them",
    );
  return usable;
}

/** A choice among some of the tools becomes a request with only those. */
function chosenTools({ tools, toolChoice }: ChatRequest): readonly Tool[] {
  if (toolChoice === undefined || toolChoice.kind === "none" || toolChoice.only === undefined)
    return tools;
  const only = new Set(toolChoice.only);
  // One forced tool is named by the choice itself: the list, and with it the prompt cache, is
  // unchanged.
  if (toolChoice.kind === "required" && only.size === 1) return tools;
  return tools.filter(({ name }) => only.has(name));
}

function serialiseTool(tool: Tool): object {
  return {
    name: tool.name,
    ...(tool.description === undefined ? {} : { description: tool.description }),
    input_schema: { type: "object", ...(tool.schema ?? { properties: {} }) },
    ...(tool.strict ? { strict: true } : {}),
    ...(tool.cache === undefined ? {} : { cache_control: cacheControl(tool.cache) }),
  };
}

function serialiseToolChoice(
  { toolChoice, parallelToolCalls }: ChatRequest,
  tools: readonly Tool[],
): object {
  const single = parallelToolCalls === false && tools.length > 0;
  if (toolChoice === undefined)
    return single ? { tool_choice: { type: "auto", disable_parallel_tool_use: true } } : {};
  const choice = choiceOf(toolChoice);
  return {
    tool_choice:
      single && choice.type !== "none" ? { ...choice, disable_parallel_tool_use: true } : choice,
  };
}

function choiceOf(choice: ToolChoice): { readonly type: string; readonly name?: string } {
  switch (choice.kind) {
    case "none":
      return { type: "none" };
    case "auto":
      return { type: "auto" };
    case "required": {
      const [first, ...others] = choice.only ?? [];
      return first !== undefined && others.length === 0
        ? { type: "tool", name: first }
        : { type: "any" };
    }
  }
}

function outputConfig({ responseFormat }: ChatRequest, effort: string | undefined): object {
  const format =
    responseFormat?.kind === "json_schema"
      ? { type: "json_schema", schema: responseFormat.schema }
      : undefined;
  if (format === undefined && effort === undefined) return {};
  return {
    output_config: {
      ...(effort === undefined ? {} : { effort }),
      ...(format === undefined ? {} : { format }),
    },
  };
}

interface Thinking {
  readonly thinks: boolean;
  readonly thinking: object | undefined;
  readonly effort: string | undefined;
  /** Added to the default of `max_tokens`, which includes thinking. */
  readonly budget: number;
}

const NO_THINKING: Thinking = { thinks: false, thinking: undefined, effort: undefined, budget: 0 };

function serialiseReasoning(
  request: ChatRequest,
  turns: Dialogue["turns"],
  model: string,
  changes: ChangeLog,
): Thinking {
  const { reasoning, showReasoning } = request;
  const display =
    showReasoning === undefined ? {} : { display: showReasoning ? "summarized" : "omitted" };
  if (reasoning === undefined) return NO_THINKING;
  if (reasoning.kind === "off") return { ...NO_THINKING, thinking: { type: "disabled" } };
  const name = request.names.reasoning ?? "reasoning";
  if (request.toolChoice?.kind === "required") {
    changes.lose(name, "cannot be combined with a forced tool call at Anthropic");
    return NO_THINKING;
  }
  if (thinksAdaptively(model)) {
    return {
      thinks: true,
      thinking: { type: "adaptive", ...display },
      effort: effortWord(reasoning),
      budget: reasoning.kind === "budget" ? reasoning.tokens : budgetOf("high"),
    };
  }
  if (callsWithoutThinking(turns)) {
    changes.note(
      "thinking left out: Anthropic wants the thinking that led to the last tool call, and " +
        "another provider made it",
    );
    return NO_THINKING;
  }
  const wanted = wantedBudget(reasoning);
  const limit = request.maxOutputTokens;
  const budget = Math.max(LEAST_BUDGET, limit === undefined ? wanted : Math.min(wanted, limit - 1));
  if (limit !== undefined && limit <= LEAST_BUDGET) {
    changes.lose(name, `needs an output limit above ${LEAST_BUDGET} tokens at Anthropic`);
    return NO_THINKING;
  }
  return {
    thinks: true,
    thinking: { type: "enabled", budget_tokens: budget, ...display },
    effort: undefined,
    budget,
  };
}

/** With a thinking budget, a tool loop must continue from Anthropic's own thinking. */
function callsWithoutThinking(turns: Dialogue["turns"]): boolean {
  if (!turns.at(-1)?.content.some(({ kind }) => kind === "tool_result")) return false;
  const last = turns.findLast(({ role }) => role === "assistant")?.content ?? [];
  if (!last.some(({ kind }) => kind === "tool_call")) return false;
  return !last.some(
    (block) =>
      (block.kind === "thinking" || block.kind === "redacted") &&
      block.signature?.vendor === "anthropic",
  );
}

function wantedBudget(reasoning: Exclude<Reasoning, { kind: "off" }>): number {
  switch (reasoning.kind) {
    case "auto":
      return budgetOf("medium");
    case "effort":
      return budgetOf(reasoning.effort);
    case "budget":
      return reasoning.tokens;
  }
}

function effortWord(reasoning: Reasoning): string | undefined {
  if (reasoning.kind === "effort") return reasoning.effort === "minimal" ? "low" : reasoning.effort;
  if (reasoning.kind !== "budget") return undefined;
  return reasoning.tokens <= 4096 ? "low" : reasoning.tokens <= 16384 ? "medium" : "high";
}
