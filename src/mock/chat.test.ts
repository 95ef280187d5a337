import { describe, expect, test } from "vitest";
import { mockAnswer } from "./chat.ts";

const user = (content: unknown) => ({ role: "user", content });
const tools = ["get_weather", "get_time"].map((name) => ({ function: { name } }));

describe("what the mock says", () => {
  test.each<[string, Parameters<typeof mockAnswer>[0], string]>([
    ["the last message", { messages: [user("first"), user("second")] }, "You said: second"],
    [
      "text parts, joined",
      {
        messages: [
          user([{ type: "text", text: "a" }, { type: "image_url" }, { type: "text", text: "b" }]),
        ],
      },
      "You said: ab",
    ],
    [
      "a tool's result",
      { messages: [{ role: "tool", content: "12 degrees" }], tools },
      "The tool said: 12 degrees",
    ],
    ["no messages", {}, "You said: nothing"],
    ["no content", { messages: [{ role: "user" }] }, "You said: nothing"],
    ["content that is null", { messages: [user(null)] }, "You said: nothing"],
    ["parts that are no objects", { messages: [user([null, 7, "x"])] }, "You said: nothing"],
    ["tools that are not named", { messages: [user("hello")], tools }, "You said: hello"],
    [
      "tools without a name",
      { messages: [user("hello")], tools: [{}, { function: {} }] },
      "You said: hello",
    ],
  ])("%s", (_name, request, text) => {
    expect(mockAnswer(request)).toMatchObject({ text, toolCalls: [] });
  });

  test("the tools that are named are called, in their order", () => {
    const answer = mockAnswer({ messages: [user("use get_time and get_weather")], tools });
    expect(answer.text).toBe("");
    expect(answer.toolCalls).toEqual([
      {
        id: "call_mock_0",
        name: "get_weather",
        arguments: '{"input":"use get_time and get_weather"}',
      },
      {
        id: "call_mock_1",
        name: "get_time",
        arguments: '{"input":"use get_time and get_weather"}',
      },
    ]);
  });

  test("an assistant or a tool that names a tool does not have it called", () => {
    for (const role of ["assistant", "tool", "system"]) {
      expect(mockAnswer({ messages: [{ role, content: "get_time" }], tools }).toolCalls).toEqual(
        [],
      );
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
