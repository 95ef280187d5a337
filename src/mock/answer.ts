/**
 * Answers of the mock model, a pure function of the request. It plays its script, if one applies.
 * Otherwise it echoes the last user message, truncated to {@link ECHO_CHARACTERS}; if the request
 * has tools and the message names some of them, the model calls all of these (which allows parallel
 * calls).
 */
import type { Block, ToolCallBlock } from "../llm/dialects/model.ts";
import { type MockRequest, type Reply, textOf } from "./conversation.ts";
import { type Script, stepOf } from "./script.ts";

export interface MockAnswer extends Reply {
  readonly promptTokens: number;
  readonly completionTokens: number;
}

/** Maximum number of echoed characters: a model's answers are short, whatever the prompt. */
const ECHO_CHARACTERS = 65_536;

/** @param script undefined to echo only */
export function mockAnswer(request: MockRequest, script?: Script): MockAnswer {
  const { text, toolCalls } =
    (script === undefined ? undefined : stepOf(script, request)) ?? echo(request);
  return {
    text,
    toolCalls,
    promptTokens: request.turns.reduce((sum, { content }) => sum + countWords(textOf(content)), 0),
    completionTokens: countWords(text) + toolCalls.length * 5,
  };
}

function echo({ turns, tools }: MockRequest): Reply {
  const last = turns.at(-1);
  const content: readonly Block[] = last?.content ?? [];
  const said = textOf(content.filter(({ kind }) => kind !== "tool_result"));
  const named =
    last?.role === "user"
      ? tools.map(({ name }) => name).filter((name) => said.includes(name))
      : [];
  const toolCalls = named.map((name, index): ToolCallBlock => ({
    kind: "tool_call",
    id: `call_mock_${index}`,
    name,
    arguments: JSON.stringify({ input: said.slice(0, 100) }),
  }));
  if (toolCalls.length > 0) return { text: "", toolCalls };
  if (said !== "") return { text: `You said: ${said.slice(0, ECHO_CHARACTERS)}`, toolCalls };
  const result = content.findLast(({ kind }) => kind === "tool_result");
  if (result === undefined) return { text: "You said: nothing", toolCalls };
  const shown = textOf([result]).slice(0, ECHO_CHARACTERS);
  return { text: `The tool said: ${shown || "nothing"}`, toolCalls };
}

/** Counts words without creating them: a prompt may be as large as a request. */
export function countWords(text: string): number {
  let count = 0;
  let inWord = false;
  for (let i = 0; i < text.length; i += 1) {
    const space = text.charCodeAt(i) <= 0x20 || text[i]?.trim() === "";
    if (!space && !inWord) count += 1;
    inWord = !space;
  }
  return count;
}
