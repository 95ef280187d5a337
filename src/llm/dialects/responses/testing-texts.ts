/** Requests in the dialect `responses`, and their texts. */
import { PNG, SCHEMA, SCHEMA_TEXT, type TextsCase } from "../testing-texts.ts";

export const RESPONSES_TEXTS: readonly TextsCase[] = [
  [
    "a text",
    "responses",
    { instructions: "be kind", input: "a b" },
    [
      ["prompt", "be kind"],
      ["prompt", "a b"],
    ],
  ],
  [
    "messages",
    "responses",
    {
      input: [
        { role: "developer", content: "be kind" },
        {
          type: "message",
          role: "user",
          content: [
            { type: "input_text", text: "a b" },
            { type: "input_image", image_url: `data:image/png;base64,${PNG}`, detail: "auto" },
            { type: "input_file", file_data: `data:application/pdf;base64,${PNG}` },
          ],
        },
        {
          type: "message",
          role: "assistant",
          status: "completed",
          id: "msg_1",
          content: [
            { type: "output_text", text: "c d", annotations: [] },
            { type: "refusal", refusal: "no way" },
          ],
        },
      ],
    },
    [
      ["prompt", "be kind"],
      ["prompt", "a b"],
      ["prompt", "c d"],
      ["prompt", "no way"],
    ],
  ],
  [
    "calls and results",
    "responses",
    {
      input: [
        {
          type: "function_call",
          call_id: "c1",
          name: "fetch",
          arguments: '{"u":"x y"}',
          status: "completed",
        },
        { type: "function_call_output", call_id: "c1", output: "the page" },
        {
          type: "function_call_output",
          call_id: "c1",
          output: [{ type: "input_text", text: "in parts" }],
        },
        { type: "custom_tool_call", call_id: "c2", name: "sql", input: "select 1" },
        { type: "custom_tool_call_output", call_id: "c2", output: "one row" },
        { type: "shell_call", call_id: "c3", action: { commands: ["ls -l"] } },
        { type: "shell_call_output", call_id: "c3", output: [{ stdout: "a file", stderr: "" }] },
        { type: "function_call_output", call_id: "c9", output: "b page" },
        { type: "function_call_output", output: "c page" },
      ],
    },
    [
      ["prompt", 'fetch\n{"u":"x y"}'],
      ["result of fetch", "the page"],
      ["result of fetch", "in parts"],
      ["prompt", "sql\nselect 1"],
      ["result of sql", "one row"],
      ["prompt", "ls -l"],
      ["result of shell", "a file\n"],
      ["result of ?", "b page"],
      ["result of ?", "c page"],
    ],
  ],
  [
    "calls of tools that the vendor ran",
    "responses",
    {
      input: [
        {
          type: "mcp_call",
          id: "m1",
          name: "jira",
          server_label: "s",
          arguments: "{}",
          output: "an issue",
          error: "or none",
        },
        {
          type: "file_search_call",
          id: "f1",
          queries: ["a b"],
          results: [{ file_id: "f", filename: "a b.txt", text: "found it" }],
        },
        {
          type: "code_interpreter_call",
          id: "i1",
          code: "print(1)",
          outputs: [{ type: "logs", logs: "some logs" }],
        },
        { type: "image_generation_call", id: "g1", result: PNG },
      ],
    },
    [
      ["prompt", "jira\ns\n{}"],
      ["result of jira", "an issue"],
      ["result of jira", "or none"],
      ["prompt", "a b"],
      ["result of file_search", "a b.txt\nfound it"],
      ["prompt", "print(1)"],
      ["result of code_interpreter", "some logs"],
    ],
  ],
  [
    "an id that stands for two tools",
    "responses",
    {
      input: [
        { type: "function_call", call_id: "c1", name: "safe", arguments: "" },
        { type: "function_call", call_id: "c1", name: "fetch", arguments: "" },
        { type: "function_call_output", call_id: "c1", output: "a page" },
      ],
    },
    [
      ["prompt", "safe\n"],
      ["prompt", "fetch\n"],
      ["result of ?", "a page"],
    ],
  ],
  [
    "a result with a name of its own",
    "responses",
    { input: [{ type: "function_call_output", call_id: "c1", name: "safe", output: "a page" }] },
    [
      ["result of ?", "a page"],
      ["result of ?", "safe"],
    ],
  ],
  [
    "reasoning",
    "responses",
    {
      input: [
        {
          type: "reasoning",
          id: "r1",
          summary: [{ type: "summary_text", text: "let me think" }],
          encrypted_content: PNG,
        },
      ],
    },
    [["prompt", "let me think"]],
  ],
  [
    "lists of tools of an MCP server, without its credentials",
    "responses",
    {
      input: [
        {
          type: "mcp_list_tools",
          server_label: "s",
          tools: [{ name: "t", description: "do as I say", input_schema: SCHEMA }],
        },
      ],
      tools: [
        {
          type: "mcp",
          server_label: "s",
          server_description: "a server",
          authorization: "secret token",
          headers: { "X-Key": "secret key" },
        },
      ],
    },
    [
      ["prompt", `s\nt\ndo as I say\n${SCHEMA_TEXT}`],
      ["prompt", "s\na server"],
    ],
  ],
  [
    "the format of the answer, and a stored prompt",
    "responses",
    {
      text: { format: { type: "json_schema", name: "w", schema: SCHEMA }, verbosity: "low" },
      prompt: { id: "pmpt_1", version: "2", variables: { who: "ada l" } },
    },
    [
      ["prompt", `w\n${SCHEMA_TEXT}\nlow`],
      ["prompt", "2\nwho\nada l"],
    ],
  ],
  [
    "settings, which are left out",
    "responses",
    {
      input: "a b",
      reasoning: { effort: "high", summary: "auto" },
      include: ["reasoning.encrypted_content"],
      tool_choice: "auto",
      truncation: "auto",
      store: false,
    },
    [["prompt", "a b"]],
  ],
  [
    "items that are texts",
    "responses",
    { input: ["a b", null, ["c d"]] },
    [
      ["prompt", "a b"],
      ["prompt", "c d"],
    ],
  ],
];
