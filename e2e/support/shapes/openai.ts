/** OpenAI's chat completions; field names checked against the official SDK's types. */
import type OpenAI from "openai";
import type { ErrorScript, Frame, FrameKind, Script, Shapes, ToolCall } from "../script.ts";
import { USAGE } from "../script.ts";

const CREATED = 1_700_000_000;

function usageOf({ usage = USAGE }: Script): OpenAI.CompletionUsage {
  return {
    prompt_tokens: usage.input,
    completion_tokens: usage.output,
    total_tokens: usage.input + usage.output,
    prompt_tokens_details: { cached_tokens: usage.cached ?? 0 },
  };
}

function toolCall({ id, name, args }: ToolCall): OpenAI.ChatCompletionMessageToolCall {
  return { id, type: "function", function: { name, arguments: JSON.stringify(args) } };
}

function whole(script: Script, model: string): OpenAI.ChatCompletion {
  const calls = script.toolCalls ?? [];
  return {
    id: "chatcmpl-fake",
    object: "chat.completion",
    created: CREATED,
    model,
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: script.text?.join("") ?? null,
          refusal: null,
          ...(calls.length === 0 ? {} : { tool_calls: calls.map(toolCall) }),
        },
        logprobs: null,
        finish_reason: calls.length === 0 ? "stop" : "tool_calls",
      },
    ],
    usage: usageOf(script),
  };
}

function frames(script: Script, model: string, body: unknown): Frame[] {
  const options = (body as OpenAI.ChatCompletionCreateParamsStreaming).stream_options;
  const withUsage = options?.include_usage === true;
  const out: Frame[] = [];
  const send = (
    kind: FrameKind,
    choices: OpenAI.ChatCompletionChunk.Choice[],
    usage?: OpenAI.CompletionUsage,
  ): void => {
    const chunk: OpenAI.ChatCompletionChunk = {
      id: "chatcmpl-fake",
      object: "chat.completion.chunk",
      created: CREATED,
      model,
      choices,
      ...(withUsage ? { usage: usage ?? null } : {}),
    };
    out.push({ kind, text: `data: ${JSON.stringify(chunk)}\n\n` });
  };
  const delta = (kind: FrameKind, content: OpenAI.ChatCompletionChunk.Choice.Delta): void =>
    send(kind, [{ index: 0, delta: content, finish_reason: null }]);
  delta("start", { role: "assistant", content: "" });
  for (const content of script.text ?? []) delta("content", { content });
  const calls = script.toolCalls ?? [];
  calls.forEach(({ id, name, args }, index) => {
    const text = JSON.stringify(args);
    const half = Math.ceil(text.length / 2);
    delta("content", {
      tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }],
    });
    delta("content", { tool_calls: [{ index, function: { arguments: text.slice(0, half) } }] });
    delta("content", { tool_calls: [{ index, function: { arguments: text.slice(half) } }] });
  });
  send("finish", [
    { index: 0, delta: {}, finish_reason: calls.length === 0 ? "stop" : "tool_calls" },
  ]);
  if (withUsage) send("usage", [], usageOf(script));
  out.push({ kind: "end", text: "data: [DONE]\n\n" });
  return out;
}

/** https://platform.openai.com/docs/guides/error-codes */
const TYPES: Readonly<Record<number, readonly [type: string, code: string | null]>> = {
  400: ["invalid_request_error", null],
  401: ["invalid_request_error", "invalid_api_key"],
  404: ["invalid_request_error", "model_not_found"],
  429: ["requests", "rate_limit_exceeded"],
  503: ["server_error", null],
};

function error({ status, message }: ErrorScript): unknown {
  const [type, code] = TYPES[status] ?? ["server_error", null];
  return { error: { message, type, param: null, code } satisfies OpenAI.ErrorObject };
}

export const openaiShapes: Shapes = {
  isStream: (_path, body) => (body as { stream?: boolean }).stream === true,
  whole,
  frames,
  error,
};
