import { describe, expect, test } from "vitest";
import { dialects } from "../llm/dialects/registry.ts";
import { type MockAnswer, mockAnswer as answerOf } from "./answer.ts";

/** Answers a request in OpenAI's form. */
function mockAnswer(request: object): MockAnswer {
  return answerOf(dialects.openai.parseRequest({ messages: [], ...request }));
}

const user = (content: unknown) => ({ role: "user", content });
const tools = ["get_weather", "get_time"].map((name) => ({ type: "function", function: { name } }));
const called = {
  role: "assistant",
  content: null,
  tool_calls: [{ id: "a", type: "function", function: { name: "get_time", arguments: "{}" } }],
};

describe("what the mock says", () => {
  test.each<[string, object, string]>([
    ["the last message", { messages: [user("first"), user("second")] }, "You said: second"],
    [
      "text parts, joined",
      {
        messages: [
          user([
            { type: "text", text: "a" },
            { type: "image_url", image_url: { url: "https://example.com/a.png" } },
            { type: "text", text: "b" },
          ]),
        ],
      },
      "You said: ab",
    ],
    [
      "a tool's result",
      {
        messages: [user("?"), called, { role: "tool", tool_call_id: "a", content: "12 degrees" }],
        tools,
      },
      "The tool said: 12 degrees",
    ],
    ["no messages", {}, "You said: nothing"],
    ["no content", { messages: [user("")] }, "You said: nothing"],
    [
      "a text beside a tool's result",
      { messages: [called, { role: "tool", tool_call_id: "a", content: "12" }, user("And now?")] },
      "You said: And now?",
    ],
    ["tools that are not named", { messages: [user("hello")], tools }, "You said: hello"],
  ])("%s", (_name, request, text) => {
    expect(mockAnswer(request)).toMatchObject({ text, toolCalls: [] });
  });

  test("the tools that are named are called, in their order", () => {
    const answer = mockAnswer({ messages: [user("use get_time and get_weather")], tools });
    expect(answer.text).toBe("");
    expect(answer.toolCalls).toEqual([
      {
        kind: "tool_call",
        id: "call_mock_0",
        name: "get_weather",
        arguments: '{"input":"use get_time and get_weather"}',
      },
      {
        kind: "tool_call",
        id: "call_mock_1",
        name: "get_time",
        arguments: '{"input":"use get_time and get_weather"}',
      },
    ]);
  });

  test("an assistant or a tool that names a tool does not have it called", () => {
    for (const last of [
      { role: "assistant", content: "get_time" },
      { role: "system", content: "get_time" },
      { role: "tool", tool_call_id: "a", content: "get_time" },
    ]) {
      expect(mockAnswer({ messages: [called, last], tools }).toolCalls).toEqual([]);
    }
  });

  test("arguments stay short", () => {
    const [call] = mockAnswer({
      messages: [user(`get_time ${"x".repeat(10_000)}`)],
      tools,
    }).toolCalls;
    expect(call?.arguments.length).toBeLessThan(200);
    expect(JSON.parse(call?.arguments ?? "")).toBeDefined();
  });

  test("is the same for the same request", () => {
    const request = { messages: [user("get_time now")], tools };
    expect(mockAnswer(request)).toEqual(mockAnswer(structuredClone(request)));
  });

  test("tokens are words: of all messages, and of the answer", () => {
    expect(mockAnswer({ messages: [user("one two"), user("  three ")] })).toMatchObject({
      promptTokens: 3,
      completionTokens: 3,
    });
    expect(mockAnswer({ messages: [user("get_time")], tools })).toMatchObject({
      promptTokens: 1,
      completionTokens: 5,
    });
  });
});

test("an endless message is echoed in part", () => {
  const content = "word ".repeat(100_000);
  const { text, promptTokens } = mockAnswer({ messages: [{ role: "user", content }] });
  expect(text).toHaveLength("You said: ".length + 65_536);
  expect(promptTokens).toBe(100_000);
});
