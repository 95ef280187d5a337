/** Requests and answers of each dialect, for tests of the pipeline. */

/** A chat completion request in OpenAI's shape. */
export function chat(model: string, more: object = {}): object {
  return { model, messages: [{ role: "user", content: "the-prompt" }], ...more };
}

/**
 * Whole answers, one for each dialect of an upstream: 100 tokens in (20 cached), 7 out, the text
 * `the-answer`.
 */
export const ANSWERS = {
  openai: {
    id: "chatcmpl-1",
    object: "chat.completion",
    created: 1,
    model: "m",
    choices: [
      { index: 0, message: { role: "assistant", content: "the-answer" }, finish_reason: "stop" },
    ],
    usage: {
      prompt_tokens: 100,
      completion_tokens: 7,
      total_tokens: 107,
      prompt_tokens_details: { cached_tokens: 20 },
    },
  },
  anthropic: {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "m",
    content: [{ type: "text", text: "the-answer" }],
    stop_reason: "end_turn",
    stop_sequence: null,
    usage: {
      input_tokens: 80,
      cache_read_input_tokens: 20,
      cache_creation_input_tokens: 0,
      output_tokens: 7,
    },
  },
  gemini: {
    responseId: "r1",
    modelVersion: "m",
    candidates: [
      {
        content: { role: "model", parts: [{ text: "the-answer" }] },
        finishReason: "STOP",
        index: 0,
      },
    ],
    usageMetadata: {
      promptTokenCount: 100,
      cachedContentTokenCount: 20,
      candidatesTokenCount: 7,
      totalTokenCount: 107,
    },
  },
} as const;

const sse = (data: object, event?: string): string =>
  `${event === undefined ? "" : `event: ${event}\n`}data: ${JSON.stringify(data)}\n\n`;

const openaiChunk = (delta: object, finish: string | null = null): string =>
  sse({
    id: "c",
    object: "chat.completion.chunk",
    created: 1,
    model: "m",
    choices: [{ index: 0, delta, finish_reason: finish }],
  });

/** The same answers as streams of events. */
export const STREAMS: Readonly<Record<keyof typeof ANSWERS, readonly string[]>> = {
  openai: [
    openaiChunk({ role: "assistant", content: "" }),
    openaiChunk({ content: "the-" }),
    openaiChunk({ content: "answer" }),
    openaiChunk({}, "stop"),
    sse({
      id: "c",
      object: "chat.completion.chunk",
      created: 1,
      model: "m",
      choices: [],
      usage: ANSWERS.openai.usage,
    }),
    "data: [DONE]\n\n",
  ],
  anthropic: [
    sse(
      {
        type: "message_start",
        message: {
          ...ANSWERS.anthropic,
          content: [],
          stop_reason: null,
          usage: { ...ANSWERS.anthropic.usage, output_tokens: 1 },
        },
      },
      "message_start",
    ),
    sse(
      { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
      "content_block_start",
    ),
    sse(
      { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "the-answer" } },
      "content_block_delta",
    ),
    sse({ type: "content_block_stop", index: 0 }, "content_block_stop"),
    sse(
      {
        type: "message_delta",
        delta: { stop_reason: "end_turn", stop_sequence: null },
        usage: { output_tokens: 7 },
      },
      "message_delta",
    ),
    sse({ type: "message_stop" }, "message_stop"),
  ],
  gemini: [
    sse({
      candidates: [{ content: { role: "model", parts: [{ text: "the-" }] }, index: 0 }],
      modelVersion: "m",
      responseId: "r",
    }),
    sse({
      ...ANSWERS.gemini,
      candidates: [
        { content: { role: "model", parts: [{ text: "answer" }] }, finishReason: "STOP", index: 0 },
      ],
    }),
  ],
};

export const EVENT_STREAM = { "content-type": "text/event-stream" } as const;
