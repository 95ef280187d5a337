import { describe, expect, test } from "vitest";
import type { WireFormat } from "../dialects/dialect.ts";
import { dialects } from "../dialects/registry.ts";
import { StreamedTexts } from "./streamed-texts.ts";

const event = (data: object): string => `data: ${JSON.stringify(data)}\n\n`;

const delta = (change: object, index = 0): string => event({ choices: [{ index, delta: change }] });
const block = (type: string, index: number, more: object): string =>
  event({ type, index, ...more });

interface Answer {
  readonly dialect: WireFormat;
  readonly whole: object;
  readonly stream: string;
  /** Each of them is a text of the stream, and part of a text of the whole answer. */
  readonly texts: readonly string[];
}

const ANSWERS: readonly Answer[] = [
  {
    dialect: "openai",
    whole: {
      choices: [
        {
          index: 0,
          message: {
            role: "assistant",
            reasoning_content: "let me think",
            content: "the whole answer",
            refusal: null,
            tool_calls: [
              { id: "1", type: "function", function: { name: "fetch", arguments: '{"a":"b c"}' } },
              { id: "2", type: "custom", custom: { name: "sql", input: "select 1" } },
            ],
          },
        },
        { index: 1, message: { role: "assistant", content: "another answer" } },
      ],
    },
    stream: [
      delta({ role: "assistant", content: "" }),
      delta({ reasoning_content: "let me" }),
      delta({ reasoning_content: " think" }),
      delta({ content: "the who" }),
      delta({ content: "another " }, 1),
      delta({ content: "le answer" }),
      delta({ content: "answer" }, 1),
      delta({
        tool_calls: [{ index: 0, id: "1", function: { name: "fetch", arguments: '{"a":' } }],
      }),
      delta({ tool_calls: [{ index: 1, id: "2", custom: { name: "sql", input: "select" } }] }),
      delta({ tool_calls: [{ index: 0, function: { arguments: '"b c"}' } }] }),
      delta({ tool_calls: [{ index: 1, custom: { input: " 1" } }] }),
      "data: [DONE]\n\n",
    ].join(""),
    texts: [
      "let me think",
      "the whole answer",
      "another answer",
      "fetch",
      '{"a":"b c"}',
      "sql",
      "select 1",
    ],
  },
  {
    dialect: "anthropic",
    whole: {
      content: [
        { type: "thinking", thinking: "let me think", signature: "c2lnbmVk" },
        { type: "text", text: "the whole answer" },
        { type: "tool_use", id: "t1", name: "fetch", input: { a: "b c" } },
        {
          type: "web_search_tool_result",
          tool_use_id: "s1",
          content: [{ type: "web_search_result", title: "a title", encrypted_content: "c2VjcmV0" }],
        },
      ],
    },
    stream: [
      event({ type: "message_start", message: { role: "assistant", content: [] } }),
      block("content_block_start", 0, { content_block: { type: "thinking", thinking: "" } }),
      block("content_block_delta", 0, { delta: { type: "thinking_delta", thinking: "let me" } }),
      block("content_block_delta", 0, { delta: { type: "thinking_delta", thinking: " think" } }),
      block("content_block_delta", 0, {
        delta: { type: "signature_delta", signature: "c2lnbmVk" },
      }),
      block("content_block_start", 1, { content_block: { type: "text", text: "" } }),
      block("content_block_delta", 1, { delta: { type: "text_delta", text: "the who" } }),
      block("content_block_delta", 1, {
        delta: {
          type: "citations_delta",
          citation: { type: "char_location", cited_text: "cited" },
        },
      }),
      block("content_block_delta", 1, { delta: { type: "text_delta", text: "le answer" } }),
      block("content_block_start", 2, {
        content_block: { type: "tool_use", id: "t1", name: "fetch", input: {} },
      }),
      block("content_block_delta", 2, {
        delta: { type: "input_json_delta", partial_json: '{"a":' },
      }),
      block("content_block_delta", 2, {
        delta: { type: "input_json_delta", partial_json: '"b c"}' },
      }),
      block("content_block_start", 3, {
        content_block: {
          type: "web_search_tool_result",
          content: [{ type: "web_search_result", title: "a title", encrypted_content: "c2VjcmV0" }],
        },
      }),
      event({ type: "message_stop" }),
    ].join(""),
    texts: ["let me think", "the whole answer", "fetch", "b c", "a title"],
  },
  {
    dialect: "gemini",
    whole: {
      candidates: [
        {
          content: {
            parts: [
              { text: "let me think", thought: true },
              { text: "the whole answer", thoughtSignature: "c2lnbmVk" },
              { functionCall: { name: "fetch", args: { a: "b c" } } },
              { inlineData: { mimeType: "image/png", data: "AAAA" } },
            ],
          },
        },
        { index: 1, content: { parts: [{ text: "another answer" }] } },
      ],
    },
    stream: [
      event({ candidates: [{ content: { parts: [{ text: "let me", thought: true }] } }] }),
      event({
        candidates: [
          { content: { parts: [{ text: " think", thought: true }, { text: "the who" }] } },
        ],
      }),
      event({ candidates: [{ index: 1, content: { parts: [{ text: "another " }] } }] }),
      event({
        candidates: [
          { content: { parts: [{ text: "le answer" }] } },
          { index: 1, content: { parts: [{ text: "answer" }] } },
        ],
      }),
      event({
        candidates: [
          { content: { parts: [{ functionCall: { name: "fetch", args: { a: "b c" } } }] } },
        ],
      }),
      event({ candidates: [{ finishReason: "STOP" }], usageMetadata: {} }),
    ].join(""),
    texts: ["let me think", "the whole answer", "another answer", "fetch\na\nb c"],
  },
  {
    dialect: "responses",
    whole: {
      status: "completed",
      output: [
        { type: "reasoning", id: "r", summary: [{ type: "summary_text", text: "let me think" }] },
        {
          type: "message",
          role: "assistant",
          status: "completed",
          content: [
            { type: "output_text", text: "the whole answer", annotations: [] },
            { type: "output_text", text: "another part" },
          ],
        },
        { type: "function_call", call_id: "c", name: "fetch", arguments: '{"a":"b c"}' },
      ],
    },
    stream: [
      event({ type: "response.created", response: { status: "in_progress", output: [] } }),
      ...["let me", " think"].map((text) =>
        event({
          type: "response.reasoning_summary_text.delta",
          output_index: 0,
          summary_index: 0,
          delta: text,
        }),
      ),
      ...["the who", "le answer"].map((text) =>
        event({
          type: "response.output_text.delta",
          output_index: 1,
          content_index: 0,
          delta: text,
        }),
      ),
      event({
        type: "response.output_text.delta",
        output_index: 1,
        content_index: 1,
        delta: "another part",
      }),
      ...['{"a":', '"b c"}'].map((text) =>
        event({ type: "response.function_call_arguments.delta", output_index: 2, delta: text }),
      ),
      event({ type: "response.audio.delta", delta: "UklGRiQAAABXQVZF" }),
      event({ type: "response.audio.transcript.delta", output_index: 3, delta: "what was said" }),
      event({ type: "response.completed", response: {} }),
    ].join(""),
    texts: ["let me think", "the whole answer", "another part", '{"a":"b c"}'],
  },
];

function read(dialect: WireFormat, stream: string, size: number): readonly string[] {
  const texts = new StreamedTexts(dialect);
  const bytes = Buffer.from(stream);
  for (let at = 0; at < bytes.length; at += size) texts.push(bytes.subarray(at, at + size));
  return texts.take().map(({ text }) => text);
}

describe.each(ANSWERS)("$dialect", ({ dialect, whole, stream, texts }) => {
  const wholeTexts = dialects[dialect].readAnswerTexts(whole);

  test.each([1, 2, 3, 7, 64, 1_000_000])("in chunks of %d bytes", (size) => {
    const streamed = read(dialect, stream, size).join("\0");
    for (const text of texts) expect(streamed).toContain(text);
    for (const text of texts) {
      expect(
        wholeTexts.some((one) => one.text.includes(text)),
        text,
      ).toBe(true);
    }
  });

  test("texts are of the kind response, and sealed or binary data is none", () => {
    for (const { kind, text } of wholeTexts) {
      expect(kind).toBe("response");
      expect(text).not.toMatch(/c2lnbmVk|c2VjcmV0|AAAA/);
    }
    expect(read(dialect, stream, 100).join(" ")).not.toMatch(/c2lnbmVk|c2VjcmV0|UklGR/);
  });

  test("a pattern that is split into single characters", () => {
    const pattern = "ignore previous instructions é 漢字 😀";
    const letters = Array.from(pattern);
    const events: Record<WireFormat, (text: string) => string> = {
      openai: (content) => delta({ content }),
      anthropic: (text) => block("content_block_delta", 0, { delta: { type: "text_delta", text } }),
      gemini: (text) => event({ candidates: [{ content: { parts: [{ text }] } }] }),
      responses: (text) => event({ type: "response.output_text.delta", delta: text }),
    };
    expect(read(dialect, letters.map(events[dialect]).join(""), 5)).toEqual([pattern]);
  });
});

test("a stream that is cut within an event", () => {
  const stream = delta({ content: "the beginning" }) + delta({ content: " and the end" });
  expect(read("openai", stream.slice(0, -20), 10)).toEqual(["the beginning"]);
});

test("events that are no JSON, or nested deeply, are left out or read", () => {
  const deep = `${"[".repeat(5_000)}"x y"${"]".repeat(5_000)}`;
  const last = `{"choices":[{"delta":{"content":${deep}}}]}`;
  const stream = `data: {\n\n: comment\n\ndata: 1\n\ndata: ${last}\n\n`;
  expect(read("openai", stream, 1_000)).toEqual(["x y"]);
});

test("what is kept of an endless stream is bounded", () => {
  const texts = new StreamedTexts("openai");
  const chunk = Buffer.from(delta({ content: "x".repeat(1_048_576) }));
  for (let count = 0; count < 8; count += 1) texts.push(chunk);
  expect(texts.take()[0]?.text.length).toBe(4 * 1_048_576);
});
