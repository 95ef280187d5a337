/**
 * Conversation helpers for targets: joined turns, hoisted system prompts, calls matched with their
 * results.
 */
import type { ChangeLog } from "./changes.ts";
import { BadRequestError } from "./dialect.ts";
import type { Block, TextBlock, ToolCallBlock, ToolResultBlock, Turn } from "./model.ts";

export interface Dialogue {
  readonly system: readonly TextBlock[];
  /** Some system turn came after the first user or assistant turn. */
  readonly hoisted: boolean;
  readonly turns: readonly {
    readonly role: "user" | "assistant";
    readonly content: readonly Block[];
  }[];
}

/**
 * Prepares turns for vendors with one system prompt and alternating roles: all system turns come
 * first (as in both vendors' own OpenAI-compatible endpoints), adjacent turns of one role are
 * joined, and tool results come first in their turn, in the order of their calls.
 */
export function toDialogue(turns: readonly Turn[]): Dialogue {
  const system: TextBlock[] = [];
  const joined: { role: "user" | "assistant"; content: Block[] }[] = [];
  let hoisted = false;
  for (const turn of turns) {
    if (turn.role === "system") {
      if (joined.length > 0) hoisted = true;
      system.push(...turn.content.filter((block) => block.kind === "text"));
      continue;
    }
    const last = joined.at(-1);
    if (last?.role === turn.role) last.content.push(...turn.content);
    else joined.push({ role: turn.role, content: [...turn.content] });
  }
  const ordered = joined.map((turn, index) => ({
    role: turn.role,
    content: orderResults(turn.content, joined[index - 1]?.content ?? []),
  }));
  return { system, hoisted, turns: ordered };
}

/** For models that refuse to continue a last assistant message. */
export function withoutPrefill(turns: Dialogue["turns"], changes: ChangeLog): Dialogue["turns"] {
  if (turns.at(-1)?.role !== "assistant" || turns.length === 1) return turns;
  changes.note("the last assistant message dropped: this model refuses to continue one");
  return turns.slice(0, -1);
}

/** Results come first, in the order of their calls; all other blocks keep their places. */
export function orderResults(content: readonly Block[], calls: readonly Block[]): Block[] {
  const results = content.filter((block) => block.kind === "tool_result");
  if (results.length === 0) return [...content];
  const order = new Map(
    calls.filter((block) => block.kind === "tool_call").map((call, index) => [call.id, index]),
  );
  const place = (result: ToolResultBlock): number => order.get(result.callId) ?? order.size;
  return [
    ...results.toSorted((a, b) => place(a) - place(b)),
    ...content.filter((block) => block.kind !== "tool_result"),
  ];
}

/**
 * Finds the call of a result: Gemini needs its name, and no vendor accepts a result without a call.
 */
export class CallIndex {
  readonly #calls = new Map<string, ToolCallBlock>();

  constructor(turns: readonly Turn[]) {
    for (const turn of turns) {
      for (const block of turn.content)
        if (block.kind === "tool_call") this.#calls.set(block.id, block);
    }
  }

  /** @throws BadRequestError naming the first result that answers no call. */
  checkResults(turns: readonly Turn[]): void {
    for (const turn of turns) {
      for (const block of turn.content) if (block.kind === "tool_result") this.nameOf(block);
    }
  }

  nameOf(result: ToolResultBlock): string {
    const call = this.#calls.get(result.callId);
    if (call !== undefined) return call.name;
    throw new BadRequestError(
      `${result.param} names no earlier tool call: ${result.callId}`,
      result.param,
    );
  }
}
