/**
 * Answers of the mock upstream and requests of the clients: fixed, so that a complete answer can be
 * distinguished from a truncated one.
 */

/**
 * The provider's key: the upstream refuses every request without it, so each 200 proves that the
 * key was replaced.
 */
export const UPSTREAM_KEY = "sk-bench-upstream";
/** Key that clients of bare Envoy send. Clients of the gateway send a workload token. */
export const CLIENT_KEY = "sk-bench-client";
export const PATH = "/v1/chat/completions";
export const MODEL = "gpt-4o-mini";
export const CHUNKS = 40;

const ID = {
  id: "chatcmpl-bench0000000000000000000001",
  created: 1_760_000_000,
  model: `${MODEL}-2024-07-18`,
};
const USAGE = { prompt_tokens: 180, completion_tokens: CHUNKS, total_tokens: 180 + CHUNKS };

const words = Array.from(
  { length: CHUNKS },
  (_, index) => `token${String(index).padStart(2, "0")} `,
);

/** The text of every answer, whole or streamed. */
export const TEXT = words.join("");

export const JSON_BODY = JSON.stringify({
  ...ID,
  object: "chat.completion",
  choices: [
    {
      index: 0,
      message: { role: "assistant", content: TEXT, refusal: null },
      logprobs: null,
      finish_reason: "stop",
    },
  ],
  usage: USAGE,
  system_fingerprint: "fp_bench",
});

/** The same answer as Anthropic's API gives it. */
export const ANTHROPIC_BODY = JSON.stringify({
  id: "msg_bench0000000000000000000001",
  type: "message",
  role: "assistant",
  model: MODEL,
  content: [{ type: "text", text: TEXT }],
  stop_reason: "end_turn",
  stop_sequence: null,
  usage: { input_tokens: USAGE.prompt_tokens, output_tokens: CHUNKS },
});

function event(choices: readonly object[], rest: object = {}): string {
  const chunk = { ...ID, object: "chat.completion.chunk", choices, ...rest };
  return `data: ${JSON.stringify(chunk)}\n\n`;
}

/** One event for each word; the last part also ends the stream, with usage. */
export const SSE_PARTS: readonly string[] = words.map((content, index) => {
  const delta = index === 0 ? { role: "assistant", content } : { content };
  const part = event([{ index: 0, delta, logprobs: null, finish_reason: null }], { usage: null });
  if (index < CHUNKS - 1) return part;
  const finish = event([{ index: 0, delta: {}, logprobs: null, finish_reason: "stop" }], {
    usage: null,
  });
  return `${part}${finish}${event([], { usage: USAGE })}data: [DONE]\n\n`;
});

export const SSE_BYTES = SSE_PARTS.join("").length;

const PROMPT =
  "Summarise this release note for an operator in two sentences, and say whether it needs " +
  "a restart. ";
const SMALL_PROMPT_BYTES = 900;

/** Begins the prompt of requests of which no two are equal. */
export const PLACEHOLDER = "0".repeat(20);

/** The body of a request. */
export function requestBody(options: {
  readonly model: string;
  readonly stream: boolean;
  readonly promptBytes?: number;
  /** Whether each request has another prompt; this one begins with the {@link PLACEHOLDER}. */
  readonly unique?: boolean;
}): string {
  const length = options.promptBytes ?? SMALL_PROMPT_BYTES;
  const start = options.unique === true ? `${PLACEHOLDER} ` : "";
  const content = (start + PROMPT.repeat(Math.ceil(length / PROMPT.length))).slice(0, length);
  return JSON.stringify({
    model: options.model,
    ...(options.stream ? { stream: true, stream_options: { include_usage: true } } : {}),
    messages: [{ role: "user", content }],
    max_tokens: 256,
  });
}

/**
 * Returns whether a client may count this answer as good. Bytes may be added to it, but none may be
 * missing.
 */
export function isWhole(body: Buffer, stream: boolean): boolean {
  return stream
    ? body.length >= SSE_BYTES && body.includes("data: [DONE]")
    : body.length >= JSON_BODY.length && body.includes('"finish_reason":"stop"');
}
