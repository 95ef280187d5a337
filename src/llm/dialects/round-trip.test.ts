import { describe, expect, test } from "vitest";
import type { DialectName, WireFormat } from "./dialect.ts";
import { createStreamReader, translateRequest, translateResponse } from "./registry.ts";

/** An answer of each signing vendor: thinking, text, two calls. */
const ANTHROPIC = {
  id: "msg_1",
  type: "message",
  role: "assistant",
  model: "claude-9",
  content: [
    { type: "thinking", thinking: "Two calls.", signature: "sig-a" },
    { type: "redacted_thinking", data: "redacted-a" },
    { type: "text", text: "Looking." },
    { type: "tool_use", id: "t1", name: "f", input: { x: 1 } },
    { type: "tool_use", id: "t2", name: "g", input: {} },
  ],
  stop_reason: "tool_use",
  stop_sequence: null,
  usage: { input_tokens: 1, output_tokens: 1 },
};

const GEMINI = {
  candidates: [
    {
      content: {
        role: "model",
        parts: [
          { text: "Two calls.", thought: true, thoughtSignature: "c2lnLWc=" },
          { text: "Looking.", thoughtSignature: "c2lnLXQ=" },
          { functionCall: { id: "t1", name: "f", args: { x: 1 } }, thoughtSignature: "c2lnLWM=" },
          { functionCall: { id: "t2", name: "g", args: {} } },
        ],
      },
      finishReason: "STOP",
    },
  ],
};

const RESULTS: Readonly<Record<WireFormat, readonly object[]>> = {
  openai: [
    { role: "tool", tool_call_id: "t1", content: "1" },
    { role: "tool", tool_call_id: "t2", content: "2" },
  ],
  anthropic: [
    {
      role: "user",
      content: [
        { type: "tool_result", tool_use_id: "t1", content: "1" },
        { type: "tool_result", tool_use_id: "t2", content: "2" },
      ],
    },
  ],
  gemini: [
    {
      role: "user",
      parts: [
        { functionResponse: { id: "t1", name: "f", response: { output: "1" } } },
        { functionResponse: { id: "t2", name: "g", response: { output: "2" } } },
      ],
    },
  ],
  responses: [
    { type: "function_call_output", call_id: "t1", output: "1" },
    { type: "function_call_output", call_id: "t2", output: "2" },
  ],
};

interface Answer {
  readonly output?: readonly object[];
  readonly choices?: readonly { readonly message: object }[];
  readonly content?: readonly object[];
  readonly candidates?: readonly { readonly content: object }[];
}

/** The next request of a client that replays the answer unchanged. */
function nextRequest(client: WireFormat, answer: Answer): object {
  switch (client) {
    case "responses":
      return {
        model: "m",
        input: [{ role: "user", content: "Q" }, ...(answer.output ?? []), ...RESULTS.responses],
      };
    case "openai":
      return {
        model: "m",
        messages: [{ role: "user", content: "Q" }, answer.choices?.[0]?.message, ...RESULTS.openai],
      };
    case "anthropic":
      return {
        model: "m",
        max_tokens: 9,
        messages: [
          { role: "user", content: "Q" },
          { role: "assistant", content: answer.content },
          ...RESULTS.anthropic,
        ],
      };
    case "gemini":
      return {
        contents: [
          { role: "user", parts: [{ text: "Q" }] },
          answer.candidates?.[0]?.content,
          ...RESULTS.gemini,
        ],
      };
  }
}

function replay(upstream: DialectName, client: WireFormat, answer: object): unknown {
  const shown = translateResponse({
    upstream,
    client,
    body: answer,
    model: "m",
    id: "ID",
    now: 0,
  }).body;
  const body = nextRequest(client, JSON.parse(shown.toString("utf8")) as Answer);
  return JSON.parse(
    translateRequest({
      from: client,
      to: upstream,
      body,
      model: "gemini-3-pro",
      stream: false,
      mode: "strict",
    }).body.toString("utf8"),
  );
}

describe("thinking and its signatures survive a round trip through another dialect", () => {
  test.each(["openai", "gemini", "responses"] as const)("anthropic through %s", (client) => {
    expect(replay("anthropic", client, ANTHROPIC)).toMatchObject({
      messages: [
        { role: "user" },
        { role: "assistant", content: ANTHROPIC.content },
        { role: "user" },
      ],
    });
  });

  test.each(["openai", "anthropic", "responses"] as const)("gemini through %s", (client) => {
    expect(replay("gemini", client, GEMINI)).toMatchObject({
      contents: [{ role: "user" }, GEMINI.candidates[0]?.content, { role: "user" }],
    });
  });

  test.each(["anthropic", "responses"] as const)("of a server with chats only: %s", (client) => {
    const message = {
      role: "assistant",
      content: "Looking.",
      reasoning_content: "Hm.",
      tool_calls: [
        { id: "t1", type: "function", function: { name: "f", arguments: "{}" } },
        { id: "t2", type: "function", function: { name: "g", arguments: "{}" } },
      ],
    };
    const answer = { choices: [{ index: 0, message, finish_reason: "tool_calls" }] };
    expect(replay("openai", client, answer)).toMatchObject({
      messages: [{ role: "user" }, message, { role: "tool" }, { role: "tool" }],
    });
  });
});

describe("a fallback gets no signatures of another vendor", () => {
  test.each([
    ["openai", "anthropic", GEMINI],
    ["anthropic", "openai", GEMINI],
    ["openai", "gemini", ANTHROPIC],
    ["gemini", "openai", ANTHROPIC],
    ["responses", "anthropic", GEMINI],
    ["responses", "gemini", ANTHROPIC],
    ["responses", "openai", ANTHROPIC],
  ] as const)("%s client, then %s", (client, fallback, answer) => {
    const upstream = answer === GEMINI ? "gemini" : "anthropic";
    const shown = translateResponse({
      upstream,
      client,
      body: answer,
      model: "m",
      id: "ID",
      now: 0,
    }).body;
    const body = nextRequest(client, JSON.parse(shown.toString("utf8")) as Answer);
    const { body: sent, changes } = translateRequest({
      from: client,
      to: fallback,
      body,
      model: "m",
      stream: false,
      mode: "strict",
    });
    expect(sent.toString("utf8")).not.toMatch(
      /sig-a|redacted-a|c2lnL|svc-foreign|c3ZjLWZvcmVpZ246|Two calls/,
    );
    expect(changes.notes.join()).toMatch(/reasoning of another provider dropped/);
  });
});

test("signatures arrive on a stream as they do in an answer", () => {
  const reader = createStreamReader({
    upstream: "gemini",
    client: "openai",
    wantsUsage: false,
    model: "m",
    id: "ID",
    now: 0,
  });
  const out =
    reader.push(Buffer.from(`data: ${JSON.stringify(GEMINI)}\n\n`)).toString("utf8") +
    reader.end().toString("utf8");
  const details = /"reasoning_details":(\[.*?\])/.exec(out)?.[1] ?? "[]";
  expect(JSON.parse(details)).toMatchObject([
    { signature: "c2lnLWc=", text: "Two calls." },
    { data: "c2lnLXQ=", id: "text" },
    { data: "c2lnLWM=", id: "t1" },
  ]);
});
