/**
 * Messages of the MCP benchmark: requests of clients and answers of the mock server, fixed, so that
 * a complete answer can be distinguished from a truncated one.
 */

/** Path of the mock server's endpoint. */
export const MCP_PATH = "/mcp";

/** What a client asks for: a tool's call, one that is answered as an event, or a list of tools. */
export type McpAsk = "call" | "call as event" | "list";

/** Length of the server's list. */
export const TOOLS = 50;

const NAMES = Array.from(
  { length: TOOLS },
  (_, index) => `repository_tool_${String(index).padStart(2, "0")}`,
);

/** Tools that the gateway's policy allows: every other one. */
export const ALLOWED_TOOLS: readonly string[] = NAMES.filter((_, index) => index % 2 === 0);

/** Tools that are in the server's list alone. */
export const HIDDEN_TOOLS: readonly string[] = NAMES.filter((_, index) => index % 2 === 1);

const LAST_ALLOWED = `"name":"${ALLOWED_TOOLS.at(-1)}"`;

const TEXT = "0f3c9a1 Correct the retry of uploads after a dropped connection\n".repeat(16);

/** Marks a call that is answered as an event. */
const EVENT_MARK = '"answer":"event"';

const CALL_RESULT = JSON.stringify({
  jsonrpc: "2.0",
  id: 1,
  result: { content: [{ type: "text", text: TEXT }], isError: false },
});

const LIST_RESULT = JSON.stringify({
  jsonrpc: "2.0",
  id: 1,
  result: {
    tools: NAMES.map((name) => ({
      name,
      title: "Commits of a repository",
      description:
        "Lists the commits of a repository from the newest to the oldest, optionally of one " +
        "branch, of one author, or of one file, with their messages.",
      inputSchema: {
        type: "object",
        properties: {
          repository: { type: "string", description: "Owner and name, such as octo/hello" },
          branch: { type: "string", description: "Name of a branch; the default one if absent" },
          limit: { type: "integer", minimum: 1, maximum: 100, default: 30 },
        },
        required: ["repository"],
        additionalProperties: false,
      },
      annotations: { readOnlyHint: true, openWorldHint: true },
    })),
  },
});

/** Body of the server's answer. */
export const MCP_ANSWERS: Readonly<Record<McpAsk, string>> = {
  call: CALL_RESULT,
  "call as event": `event: message\ndata: ${CALL_RESULT}\n\n`,
  list: LIST_RESULT,
};

/** Body of a client's request. */
export function mcpRequest(ask: McpAsk, tool = ALLOWED_TOOLS[0] ?? ""): string {
  const answer = ask === "call as event" ? { answer: "event" } : {};
  return JSON.stringify(
    ask === "list"
      ? { jsonrpc: "2.0", id: 1, method: "tools/list", params: {} }
      : {
          jsonrpc: "2.0",
          id: 1,
          method: "tools/call",
          params: {
            name: tool,
            arguments: { repository: "octo/hello", branch: "main", limit: 16, ...answer },
          },
        },
  );
}

/** Returns what a request asks for. */
export function askOf(body: Buffer): McpAsk {
  if (body.includes('"tools/list"')) return "list";
  return body.includes(EVENT_MARK) ? "call as event" : "call";
}

/** Returns whether a client may count this answer as good. A list may be filtered. */
export function isWholeMcp(body: Buffer, ask: McpAsk): boolean {
  return ask === "list"
    ? body.includes(LAST_ALLOWED) && body.subarray(-4).toString() === "}]}}"
    : body.length === MCP_ANSWERS[ask].length;
}
