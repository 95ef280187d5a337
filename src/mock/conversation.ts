/** Reads conversations, whose turns some dialects split and others join. */
import type { Block, ChatRequest, ToolCallBlock, Turn } from "../llm/dialects/model.ts";

/** The part of a request that the mock model reads. */
export type MockRequest = Pick<ChatRequest, "turns" | "tools">;

/** An answer of the model: its text, and its tool calls. */
export interface Reply {
  readonly text: string;
  readonly toolCalls: readonly ToolCallBlock[];
}

/** Returns the text of blocks, and of the results of tools among them. */
export function textOf(content: readonly Block[]): string {
  return content
    .map((block) => {
      if (block.kind === "text") return block.text;
      return block.kind === "tool_result" ? textOf(block.content) : "";
    })
    .join("");
}

/** Joins neighbouring turns of one role. */
export function groupsOf(turns: readonly Turn[]): Pick<Turn, "role" | "content">[] {
  const groups: { role: Turn["role"]; content: Block[] }[] = [];
  for (const { role, content } of turns) {
    const last = groups.at(-1);
    if (last?.role === role) last.content.push(...content);
    else groups.push({ role, content: [...content] });
  }
  return groups;
}
