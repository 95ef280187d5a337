/** Requests in the dialect `anthropic`, and their texts. */
import { PNG, SCHEMA, SCHEMA_TEXT, type TextsCase } from "../testing-texts.ts";

const user = (content: unknown): object => ({ messages: [{ role: "user", content }] });
const toolUse = (id: string, name: string, type = "tool_use"): object => ({
  role: "assistant",
  content: [{ type, id, name, input: {} }],
});
const toolResult = (id: string, content: unknown, type = "tool_result"): object => ({
  role: "user",
  content: [{ type, tool_use_id: id, content }],
});

export const ANTHROPIC_TEXTS: readonly TextsCase[] = [
  [
    "a prompt",
    "anthropic",
    { system: "be kind", ...user("a b") },
    [
      ["prompt", "be kind"],
      ["prompt", "a b"],
    ],
  ],
  [
    "system in blocks",
    "anthropic",
    {
      system: [{ type: "text", text: "be kind", cache_control: { type: "ephemeral", ttl: "1h" } }],
    },
    [["prompt", "be kind"]],
  ],
  [
    "thinking, calls and results",
    "anthropic",
    {
      messages: [
        {
          role: "assistant",
          content: [
            { type: "thinking", thinking: "let me think", signature: `${PNG}=` },
            { type: "redacted_thinking", data: PNG },
            { type: "text", text: "I look" },
            {
              type: "tool_use",
              id: "t1",
              name: "fetch",
              input: { url: "a page", "do as": ["I say"] },
            },
          ],
        },
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "t1", content: "the page", is_error: false },
          ],
        },
      ],
    },
    [
      ["prompt", "let me think"],
      ["prompt", "I look"],
      ["prompt", "fetch\nurl\na page\ndo as\nI say"],
      ["result of fetch", "the page"],
    ],
  ],
  [
    "text in place of what is sealed",
    "anthropic",
    {
      messages: [
        {
          role: "assistant",
          content: [
            { type: "redacted_thinking", data: "do as I say" },
            { type: "thinking", thinking: "", signature: "and this" },
          ],
        },
      ],
    },
    [
      ["prompt", "do as I say"],
      ["prompt", "\nand this"],
    ],
  ],
  [
    "a result in blocks, with media",
    "anthropic",
    {
      messages: [
        toolUse("t1", "fetch"),
        toolResult("t1", [
          { type: "text", text: "the page" },
          { type: "image", source: { type: "base64", media_type: "image/png", data: PNG } },
          {
            type: "document",
            title: "a title",
            source: { type: "base64", media_type: "application/pdf", data: PNG },
          },
          {
            type: "document",
            source: { type: "text", media_type: "text/plain", data: "plain text" },
          },
          {
            type: "document",
            source: { type: "content", content: [{ type: "text", text: "inner text" }] },
          },
          {
            type: "search_result",
            source: "https://x.example/a b",
            title: "found it",
            content: [{ type: "text", text: "a result" }],
          },
        ]),
      ],
    },
    [
      ["prompt", "fetch"],
      ["result of fetch", "the page"],
      ["result of fetch", "a title"],
      ["result of fetch", "plain text"],
      ["result of fetch", "inner text"],
      ["result of fetch", "https://x.example/a b\nfound it\na result"],
    ],
  ],
  [
    "results of the vendor's own tools",
    "anthropic",
    {
      messages: [
        toolUse("s1", "web_search", "server_tool_use"),
        toolResult(
          "s1",
          [
            {
              type: "web_search_result",
              title: "a title",
              url: "https://x.example",
              encrypted_content: PNG,
              page_age: "2 days",
            },
          ],
          "web_search_tool_result",
        ),
        toolUse("s2", "code_execution", "server_tool_use"),
        toolResult(
          "s2",
          { type: "code_execution_result", stdout: "some output", stderr: "" },
          "code_execution_tool_result",
        ),
        toolUse("m1", "jira", "mcp_tool_use"),
        toolResult("m1", [{ type: "text", text: "an issue" }], "mcp_tool_result"),
      ],
    },
    [
      ["prompt", "web_search"],
      ["result of web_search", "a title\nhttps://x.example\n2 days"],
      ["prompt", "code_execution"],
      ["result of code_execution", "some output\n"],
      ["prompt", "jira"],
      ["result of jira", "an issue"],
    ],
  ],
  [
    "a result without a call",
    "anthropic",
    {
      messages: [
        toolResult("t9", "a page"),
        { role: "user", content: [{ type: "tool_result", content: "b page" }] },
      ],
    },
    [
      ["result of ?", "a page"],
      ["result of ?", "b page"],
    ],
  ],
  [
    "an id that stands for two tools",
    "anthropic",
    { messages: [toolUse("t1", "safe"), toolUse("t1", "fetch"), toolResult("t1", "a page")] },
    [
      ["prompt", "safe"],
      ["prompt", "fetch"],
      ["result of ?", "a page"],
    ],
  ],
  [
    "a result that is renamed",
    "anthropic",
    {
      messages: [
        toolUse("t1", "fetch"),
        {
          role: "user",
          content: [{ type: "tool_result", tool_use_id: "t1", name: "safe", content: "a page" }],
        },
      ],
    },
    [
      ["prompt", "fetch"],
      ["result of fetch", "a page"],
      ["result of fetch", "safe"],
    ],
  ],
  [
    "a result that is a single block, or in an odd form",
    "anthropic",
    {
      messages: [
        {
          role: "user",
          content: { type: "tool_result", tool_use_id: "t1", content: { text: "a page" } },
        },
        { role: "user", content: [[{ type: "tool_result", content: "b page" }]] },
      ],
    },
    [
      ["result of ?", "a page"],
      ["prompt", "b page"],
    ],
  ],
  [
    "definitions of tools, and servers without their tokens",
    "anthropic",
    {
      ...user("a b"),
      tools: [{ name: "weather", description: "tells it", input_schema: SCHEMA }],
      mcp_servers: [
        {
          type: "url",
          name: "jira",
          url: "https://mcp.example/a-very-long-path/of-a-server/that-is-no-setting",
          authorization_token: "secret token",
        },
      ],
      tool_choice: { type: "auto" },
      metadata: { user_id: "u 1" },
    },
    [
      ["prompt", "a b"],
      ["prompt", `weather\ntells it\n${SCHEMA_TEXT}`],
      ["prompt", "jira\nhttps://mcp.example/a-very-long-path/of-a-server/that-is-no-setting"],
    ],
  ],
  [
    "other members of a message",
    "anthropic",
    { messages: [{ role: "user", content: "a b", note: "do as I say" }, "and this"] },
    [
      ["prompt", "a b"],
      ["prompt", "do as I say"],
      ["prompt", "and this"],
    ],
  ],
];
