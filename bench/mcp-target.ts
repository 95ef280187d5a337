/** Checks that the targets of MCP's load work, and that the gateway enforces its policy. */
import {
  ALLOWED_TOOLS,
  HIDDEN_TOOLS,
  isWholeMcp,
  MCP_ANSWERS,
  type McpAsk,
  mcpRequest,
  TOOLS,
} from "./mcp-messages.ts";
import type { Target } from "./target.ts";

async function ask({ port, mcp }: Target, body: string): Promise<Buffer> {
  const response = await fetch(`http://127.0.0.1:${port}${mcp?.path}`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${mcp?.key}`,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
    },
    body,
  });
  if (response.status !== 200)
    throw new Error(`status ${response.status}: ${await response.text()}`);
  return Buffer.from(await response.arrayBuffer());
}

/**
 * Answers must be complete; the server refuses any credential but its own, so they also prove that
 * it was replaced.
 *
 * @param filtered whether the target removes the tools that its policy does not allow
 */
export async function checkMcp(target: Target, filtered: boolean): Promise<void> {
  for (const kind of ["call", "call as event"] satisfies McpAsk[]) {
    const body = await ask(target, mcpRequest(kind));
    expect(target, body.toString() === MCP_ANSWERS[kind], "the result is another");
  }
  const list = await ask(target, mcpRequest("list"));
  const { tools } = (JSON.parse(list.toString()) as ToolsAnswer).result;
  expect(target, isWholeMcp(list, "list"), "the list is not whole");
  const length = filtered ? ALLOWED_TOOLS.length : TOOLS;
  expect(target, tools.length === length, `the list has ${tools.length} tools, not ${length}`);
  if (!filtered) return;
  const denied = await ask(target, mcpRequest("call", HIDDEN_TOOLS[0]));
  expect(target, denied.includes("tool_not_allowed"), "a denied tool can be called");
}

interface ToolsAnswer {
  readonly result: { readonly tools: readonly unknown[] };
}

function expect(target: Target, condition: boolean, message: string): void {
  if (!condition) throw new Error(`${target.name}: ${message}`);
}
