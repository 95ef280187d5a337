import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { JsonBody } from "../request/json-body.ts";
import type { WireFormat } from "./dialect.ts";
import { dialects } from "./registry.ts";
import type { ContentText } from "./texts.ts";
import type { TextRow } from "./testing-texts.ts";
import { OPENAI_TEXTS } from "./openai/testing-texts.ts";
import { ANTHROPIC_TEXTS } from "./anthropic/testing-texts.ts";
import { GEMINI_TEXTS } from "./gemini/testing-texts.ts";
import { RESPONSES_TEXTS } from "./responses/testing-texts.ts";

const rowOf = ({ kind, tool, text }: ContentText): TextRow => [
  kind === "tool_result" ? `result of ${tool ?? "?"}` : kind,
  text,
];

const rowsOf = (dialect: WireFormat, body: object): readonly TextRow[] =>
  dialects[dialect].readTexts(body as Record<string, unknown>).map(rowOf);

describe.each([
  ["openai", OPENAI_TEXTS],
  ["anthropic", ANTHROPIC_TEXTS],
  ["gemini", GEMINI_TEXTS],
  ["responses", RESPONSES_TEXTS],
])("%s", (_, cases) => {
  test.each(cases)("%s", (_name, dialect, body, texts) => {
    expect(rowsOf(dialect, body)).toEqual(texts);
  });
});

test("places in the body", () => {
  const places = (dialect: WireFormat, body: object): readonly string[] =>
    dialects[dialect].readTexts(body as Record<string, unknown>).map(({ param }) => param);
  expect(
    places("openai", {
      messages: [
        { role: "user", content: ["a", { text: "b" }] },
        { role: "tool", content: "c" },
      ],
      tools: ["d e"],
    }),
  ).toEqual([
    "messages[0].content[0]",
    "messages[0].content[1]",
    "messages[1].content",
    "tools[0]",
  ]);
  expect(
    places("anthropic", {
      system: "a",
      messages: [{ content: [{ text: "b" }, { type: "tool_result", content: ["c"] }] }],
    }),
  ).toEqual(["system", "messages[0].content[0]", "messages[0].content[1].content[0]"]);
  expect(
    places("gemini", {
      generateContentRequest: { contents: [{ parts: [{ text: "a" }] }], tools: ["b c"] },
    }),
  ).toEqual(["generateContentRequest.contents[0].parts[0]", "generateContentRequest.tools[0]"]);
  expect(places("responses", { instructions: "a", input: [{ content: [{ text: "b" }] }] })).toEqual(
    ["instructions", "input[0].content[0]"],
  );
});

test("Gemini's results are part of the prompt too; others are not", () => {
  const isPrompt = (dialect: WireFormat, body: object): readonly boolean[] =>
    dialects[dialect].readTexts(body as Record<string, unknown>).map((text) => text.isPrompt);
  expect(
    isPrompt("gemini", { contents: [{ parts: [{ functionResponse: "a b" }, { text: "c" }] }] }),
  ).toEqual([true, true]);
  expect(
    isPrompt("openai", {
      messages: [
        { role: "tool", content: "a b" },
        { role: "user", content: "c" },
      ],
    }),
  ).toEqual([false, true]);
});

describe("sources", () => {
  const sources = (dialect: WireFormat, body: object): readonly string[] =>
    dialects[dialect].readTexts(body as Record<string, unknown>).map(({ source }) => source);

  test("parts of a message, and messages of one role in a row, have the same one", () => {
    expect(
      sources("openai", {
        messages: [
          { role: "user", content: ["a", "b"], name: "n m" },
          { role: "user", content: "c" },
        ],
      }),
    ).toEqual(["user", "user", "user.name", "user"]);
    expect(
      sources("anthropic", {
        messages: [
          {
            role: "user",
            content: [
              { type: "text", text: "a" },
              { type: "image_caption", caption: "b" },
              { type: "text", text: "c" },
            ],
          },
        ],
      }),
    ).toEqual(["user", "user.messages[0].content[1]", "user"]);
    expect(
      sources("gemini", {
        contents: [{ parts: [{ text: "a" }, { executableCode: "b" }] }, { parts: [{ text: "c" }] }],
      }),
    ).toEqual(["user", "user.contents[0].parts[1]", "user"]);
    expect(
      sources("responses", {
        input: [
          { role: "user", content: ["a", "b"] },
          { role: "user", content: "c" },
        ],
      }),
    ).toEqual(["user", "user", "user"]);
  });

  test("results of different calls have different ones", () => {
    expect(
      sources("openai", {
        messages: [
          { role: "tool", tool_call_id: "1", content: ["a", "b"] },
          { role: "tool", tool_call_id: "2", content: "c" },
          { role: "tool", content: "d" },
          { role: "tool", content: "e" },
        ],
      }),
    ).toEqual(["tool:1", "tool:1", "tool:2", "tool:messages[2]", "tool:messages[3]"]);
  });
});

const DIALECTS = ["openai", "anthropic", "gemini", "responses"] as const;

describe.each(DIALECTS)("hostile bodies: %s", (dialect) => {
  const MARK = "do as I say, 4711";

  /** Names that dialects read, so that wrong types are in the right places. */
  const NAMES = [
    "messages",
    "contents",
    "content",
    "parts",
    "input",
    "system",
    "instructions",
    "role",
    "type",
    "text",
    "tool_calls",
    "function",
    "custom",
    "name",
    "arguments",
    "function_call",
    "tools",
    "functionCall",
    "functionResponse",
    "response",
    "tool_call_id",
    "tool_use_id",
    "call_id",
    "id",
    "output",
    "outputs",
    "source",
    "data",
    "url",
    "image_url",
    "systemInstruction",
    "signature",
    "generateContentRequest",
    "schema",
    "thinking",
    "inlineData",
    "result",
    "title",
    "status",
  ];
  const LABELS = [
    "user",
    "assistant",
    "tool",
    "function",
    "system",
    "text",
    "tool_use",
    "tool_result",
    "document",
    "function_call",
    "function_call_output",
    "mcp_call",
    "message",
    "image",
    "mcp",
    "t1",
    "",
  ];
  const tree = fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: "small", withCrossShrink: true },
      fc.constantFrom<unknown>(null, true, 0, 1e9, ...LABELS),
      fc.string({ maxLength: 5 }),
      fc.array(tie("value"), { maxLength: 4 }),
      tie("object"),
    ),
    object: fc
      .array(fc.tuple(fc.constantFrom(...NAMES), tie("value")), { maxLength: 5 })
      .map((entries) => Object.fromEntries(entries)),
  })).object as fc.Arbitrary<Record<string, unknown>>;

  test("wrong types in any place never throw", () => {
    fc.assert(
      fc.property(tree, (body) => {
        for (const text of dialects[dialect].readTexts(body)) expect(text.text).not.toBe("");
        dialects[dialect].readAnswerTexts(body);
        dialects[dialect].readStreamedTexts(body);
      }),
      { numRuns: 500 },
    );
    for (const value of [null, undefined, 1, "x", [], [[]], [null], true]) {
      dialects[dialect].readAnswerTexts(value);
      dialects[dialect].readStreamedTexts(value);
    }
  });

  /** Returns copies of a value, each with the mark in place of another string. */
  function* marked(value: unknown): Generator {
    if (typeof value === "string") yield MARK;
    else if (Array.isArray(value)) {
      for (const [index, item] of value.entries()) {
        for (const copy of marked(item)) yield value.with(index, copy);
      }
    } else if (typeof value === "object" && value !== null) {
      for (const [name, member] of Object.entries(value)) {
        for (const copy of marked(member)) yield { ...value, [name]: copy };
      }
    }
  }

  const isFound = (body: unknown): boolean =>
    dialects[dialect]
      .readTexts(body as Record<string, unknown>)
      .some(({ text }) => text.includes(MARK));

  /** What texts.ts leaves out, whatever its form. */
  const EXCLUDED = ["model", "user", "metadata", "labels", "safety_identifier", "prompt_cache_key"];

  test("text in place of any string is found", () => {
    fc.assert(
      fc.property(tree, (body) => {
        for (const copy of marked(body)) expect(isFound(copy), JSON.stringify(copy)).toBe(true);
      }),
      { numRuns: 300 },
    );
  });

  test("text in place of any string of a real request is found", () => {
    const cases = [...OPENAI_TEXTS, ...ANTHROPIC_TEXTS, ...GEMINI_TEXTS, ...RESPONSES_TEXTS];
    let count = 0;
    for (const [, own, body] of cases) {
      if (own !== dialect) continue;
      const known = Object.fromEntries(
        Object.entries(body).filter(([name]) => !EXCLUDED.includes(name)),
      );
      for (const copy of marked(known)) {
        const text = JSON.stringify(copy);
        if (/"(?:authorization|authorization_token|X-Key|model)":"do as/.test(text)) continue;
        count += 1;
        expect(isFound(copy), text).toBe(true);
      }
    }
    expect(count).toBeGreaterThan(20);
  });

  test("nesting is bounded, and would do no harm", () => {
    const deep = (levels: number): string =>
      `${'{"a":['.repeat(levels)}"x y"${"]}".repeat(levels)}`;
    const body = `{"messages":${deep(200)}}`;
    expect(() => JsonBody.read(Buffer.from(body))).toThrow(/nest|deep/i);
    let value: unknown = "x y";
    for (let level = 0; level < 200_000; level += 1)
      value = level % 2 === 0 ? [value] : { a: value };
    const read = dialects[dialect].readTexts({ messages: value, contents: value, input: value });
    expect(read.some(({ text }) => text === "x y")).toBe(true);
    dialects[dialect].readAnswerTexts({
      choices: [{ message: { content: value } }],
      content: value,
      output: value,
      candidates: [{ content: { parts: value } }],
    });
  });
});
