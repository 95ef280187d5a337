/**
 * Scripts of the mock model: a list of conversations, each with the model's steps. With a script,
 * an agent can be tried without a key: the model calls the agent's tools in a known order.
 *
 *     - when: "Write the list"
 *       steps:
 *         - text: "I write it."
 *           calls:
 *             - bash: { command: "seq 10 > list" }
 *               run_shell_command: { command: "seq 10 > list" }
 *         - text: "It is written."
 */
import * as z from "zod";
import type { ToolCallBlock, Turn } from "../llm/dialects/model.ts";
import { lineAt, offsetOf, readDocuments, syntaxMessage } from "../resources/yaml.ts";
import { groupsOf, type MockRequest, type Reply } from "./conversation.ts";

const callSchema = z
  .record(z.string().min(1), z.record(z.string(), z.unknown()))
  .refine((tools) => Object.keys(tools).length > 0, "must name a tool")
  .describe("Arguments by the tool's name: the first tool that the request declares is called.");

const stepSchema = z.strictObject({
  text: z.string().default("").describe("What the model says."),
  calls: z.array(callSchema).default([]).describe("The tools that it then calls, in parallel."),
});

const conversationSchema = z.strictObject({
  when: z
    .string()
    .default("")
    .describe("A text in a user message, after which the steps are played. Default: any."),
  steps: z.array(stepSchema).min(1).describe("The model's answers, in their order."),
});

const scriptSchema = z.array(conversationSchema);

export type Script = z.infer<typeof scriptSchema>;
type Step = z.infer<typeof stepSchema>;

/**
 * Parses a script.
 *
 * @param file name for messages
 * @throws ScriptError with the place of the first mistake
 */
export function parseScript(text: string, file: string): Script {
  const [first, second] = readDocuments(text);
  if (first === undefined || second !== undefined) {
    throw new ScriptError(`${file}: a script of the mock model is one YAML list of conversations`);
  }
  const { document } = first;
  const [error] = document.errors;
  if (error !== undefined) {
    throw new ScriptError(`${file}:${lineAt(text, error.pos[0])}: ${syntaxMessage(error.code)}`);
  }
  const parsed = scriptSchema.safeParse(document.toJS());
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const place = issue?.path.map(String).join(".") ?? "";
  const line = lineAt(text, offsetOf(document, issue?.path ?? []));
  throw new ScriptError(
    `${file}:${line}: ${place === "" ? "the script" : place}: ${issue?.message}`,
  );
}

export class ScriptError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "ScriptError";
  }
}

/**
 * Returns the model's next step in the conversation that began last; undefined if there
 * is none, if its steps have been played, or if the request declares none of the tools that the
 * step calls (agents ask side questions, e.g. for a title, without tools).
 */
export function stepOf(script: Script, request: MockRequest): Reply | undefined {
  const groups = groupsOf(request.turns);
  const starts = script.map(({ when }) => startOf(when, groups));
  const start = Math.max(-1, ...starts);
  const conversation = script[starts.indexOf(start)];
  if (start < 0 || conversation === undefined) return undefined;
  const played = groups.slice(start).filter(({ role }) => role === "assistant").length;
  const step = conversation.steps[played];
  return step === undefined ? undefined : playable(step, played, request);
}

/** Returns the index of the last turn with the text, or of the first user turn for no text. */
function startOf(when: string, groups: readonly Pick<Turn, "role" | "content">[]): number {
  if (when === "") return groups.findIndex(({ role }) => role === "user");
  return groups.findLastIndex(
    ({ role, content }) =>
      role === "user" &&
      content.some((block) => block.kind === "text" && block.text.includes(when)),
  );
}

function playable(
  { text, calls }: Step,
  played: number,
  { tools }: MockRequest,
): Reply | undefined {
  const declared = new Set(tools.map(({ name }) => name));
  const toolCalls: ToolCallBlock[] = [];
  for (const [index, call] of calls.entries()) {
    const name = Object.keys(call).find((tool) => declared.has(tool));
    if (name === undefined) return undefined;
    toolCalls.push({
      kind: "tool_call",
      id: `call_mock_${played}_${index}`,
      name,
      arguments: JSON.stringify(call[name]),
    });
  }
  return { text, toolCalls };
}
