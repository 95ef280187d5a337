/**
 * The model into a generateContent request. Field names: `GenerateContentParameters` of
 * @google/genai.
 */
import type { DropTable } from "../leftovers.ts";
import { settleLeftovers } from "../leftovers.ts";
import { type ChangeLog, unsupported } from "../changes.ts";
import type { ChatRequest, Effort, Reasoning, ResponseFormat, Tool, ToolChoice } from "../model.ts";
import { budgetOf } from "../reasoning.ts";
import type { TranslationTarget } from "../target.ts";
import { CallIndex, toDialogue, withoutPrefill } from "../turns.ts";
import { generationOf } from "./generation.ts";
import { serialiseContents } from "./serialise-parts.ts";

const IDENTIFIES = "only identifies the caller to its vendor; it does not change an answer";
const CACHES = "a hint for OpenAI's cache only; it does not change an answer";

export const GEMINI_DROPS: DropTable = {
  metadata: "a label in OpenAI's dashboard only; it does not change an answer",
  prompt_cache_key: CACHES,
  prompt_cache_retention: CACHES,
  prompt_cache_options: CACHES,
};

/** The largest thinking budget that every thinking model before Gemini 3 accepts. */
const LARGEST_BUDGET = 24576;

export function serialiseRequest(
  request: ChatRequest,
  { model, changes }: TranslationTarget,
): object {
  settleLeftovers(request.leftovers, GEMINI_DROPS, "Gemini", changes);
  refuse(request, changes);
  if (request.user !== undefined) changes.drop(request.names.user ?? "user", IDENTIFIES);
  if (hasCacheMarks(request))
    changes.note("prompt-cache markers dropped: Gemini caches prompts by itself");
  const dialogue = toDialogue(request.turns);
  if (dialogue.hoisted)
    changes.note("system messages moved to the front: Gemini takes one system instruction");
  const config = generationConfig(request, model, changes);
  return {
    ...(dialogue.system.length > 0
      ? { systemInstruction: { parts: dialogue.system.map(({ text }) => ({ text })) } }
      : {}),
    contents: serialiseContents(
      withoutPrefill(dialogue.turns, changes),
      new CallIndex(request.turns),
      model,
      changes,
    ),
    ...(request.tools.length > 0
      ? { tools: [{ functionDeclarations: request.tools.map(serialiseTool) }] }
      : {}),
    ...toolConfig(request),
    ...(Object.keys(config).length > 0 ? { generationConfig: config } : {}),
  };
}

function refuse(request: ChatRequest, changes: ChangeLog): void {
  if (request.choices !== undefined && request.choices !== 1) {
    throw unsupported(request.names.choices ?? "n", "must be 1 where the answer is translated");
  }
  if (request.parallelToolCalls === false && request.tools.length > 0) {
    changes.lose(
      request.names.parallelToolCalls ?? "parallel_tool_calls",
      "cannot forbid parallel calls at Gemini",
    );
  }
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
    name: tool.name,
    ...(tool.description === undefined ? {} : { description: tool.description }),
    ...(tool.schema === undefined ? {} : { parametersJsonSchema: tool.schema }),
  };
}

/** `VALIDATED` is Gemini's mode for strict schemas, and for an optional choice among some tools. */
function toolConfig({ tools, toolChoice }: ChatRequest): object {
  if (tools.length === 0) return {};
  const strict = tools.some((tool) => tool.strict);
  const config = callingConfig(toolChoice ?? { kind: "auto", only: undefined }, strict);
  if (toolChoice === undefined && !strict) return {};
  return { toolConfig: { functionCallingConfig: config } };
}

function callingConfig(choice: ToolChoice, strict: boolean): object {
  if (choice.kind === "none") return { mode: "NONE" };
  const only = choice.only === undefined ? {} : { allowedFunctionNames: choice.only };
  if (choice.kind === "required") return { mode: "ANY", ...only };
  return { mode: strict || choice.only !== undefined ? "VALIDATED" : "AUTO", ...only };
}

function generationConfig(request: ChatRequest, model: string, changes: ChangeLog): object {
  return {
    ...(request.maxOutputTokens === undefined ? {} : { maxOutputTokens: request.maxOutputTokens }),
    ...(request.temperature === undefined ? {} : { temperature: request.temperature }),
    ...(request.topP === undefined ? {} : { topP: request.topP }),
    ...(request.topK === undefined ? {} : { topK: request.topK }),
    ...(request.presencePenalty === undefined ? {} : { presencePenalty: request.presencePenalty }),
    ...(request.frequencyPenalty === undefined
      ? {}
      : { frequencyPenalty: request.frequencyPenalty }),
    ...(request.seed === undefined ? {} : { seed: request.seed }),
    ...(request.stop.length > 0 ? { stopSequences: request.stop } : {}),
    ...responseFormat(request.responseFormat),
    ...thinkingConfig(request, model, changes),
  };
}

function responseFormat(format: ResponseFormat | undefined): object {
  switch (format?.kind) {
    case undefined:
      return {};
    case "json_object":
      return { responseMimeType: "application/json" };
    case "json_schema":
      return { responseMimeType: "application/json", responseJsonSchema: format.schema };
  }
}

const LEVELS: Readonly<Record<Effort, string>> = {
  minimal: "MINIMAL",
  low: "LOW",
  medium: "MEDIUM",
  high: "HIGH",
  xhigh: "HIGH",
  max: "HIGH",
};

function thinkingConfig(
  { reasoning, showReasoning }: ChatRequest,
  model: string,
  changes: ChangeLog,
): object {
  if (reasoning === undefined) return {};
  const amount =
    generationOf(model) >= 3
      ? thinkingLevel(reasoning)
      : { thinkingBudget: thinkingBudget(reasoning, changes) };
  const shown = reasoning.kind !== "off" && showReasoning !== false;
  return { thinkingConfig: { ...amount, ...(shown ? { includeThoughts: true } : {}) } };
}

/** From Gemini 3 on; thinking cannot be disabled there, only minimised. */
function thinkingLevel(reasoning: Reasoning): object {
  switch (reasoning.kind) {
    case "off":
      return { thinkingLevel: "MINIMAL" };
    case "auto":
      return {};
    case "effort":
      return { thinkingLevel: LEVELS[reasoning.effort] };
    case "budget":
      return {
        thinkingLevel:
          reasoning.tokens <= 4096 ? "LOW" : reasoning.tokens <= 16384 ? "MEDIUM" : "HIGH",
      };
  }
}

function thinkingBudget(reasoning: Reasoning, changes: ChangeLog): number {
  switch (reasoning.kind) {
    case "off":
      return 0;
    case "auto":
      return -1;
    case "effort":
      return budgetOf(reasoning.effort);
    case "budget":
      if (reasoning.tokens > LARGEST_BUDGET)
        changes.note(`thinking budget capped at ${LARGEST_BUDGET}, the most that Gemini 2.5 takes`);
      return Math.min(reasoning.tokens, LARGEST_BUDGET);
  }
}
