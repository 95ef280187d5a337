/** Anthropic's messages; field names checked against the official SDK's types. */
import type Anthropic from "@anthropic-ai/sdk";
import type { ErrorScript, Frame, FrameKind, Script, Shapes } from "../script.ts";
import { USAGE } from "../script.ts";

/** Anthropic's input count excludes cache reads. */
function usageOf({
  usage = USAGE,
}: Script): Pick<
  Anthropic.Usage,
  "input_tokens" | "cache_read_input_tokens" | "cache_creation_input_tokens" | "output_tokens"
> {
  const cached = usage.cached ?? 0;
  return {
    input_tokens: usage.input - cached,
    cache_read_input_tokens: cached,
    cache_creation_input_tokens: 0,
    output_tokens: usage.output,
  };
}

type WireMessage = Pick<Anthropic.Message, "id" | "type" | "role" | "model" | "stop_sequence"> & {
  readonly content: readonly (Anthropic.TextBlock | Omit<Anthropic.ToolUseBlock, "caller">)[];
  readonly stop_reason: Anthropic.StopReason | null;
  readonly usage: ReturnType<typeof usageOf>;
};

function whole(script: Script, model: string): WireMessage {
  const calls = script.toolCalls ?? [];
  return {
    id: "msg_fake",
    type: "message",
    role: "assistant",
    model,
    content: [
      ...(script.text === undefined
        ? []
        : [{ type: "text" as const, text: script.text.join(""), citations: null }]),
      ...calls.map(({ id, name, args }) => ({ type: "tool_use" as const, id, name, input: args })),
    ],
    stop_reason: calls.length === 0 ? "end_turn" : "tool_use",
    stop_sequence: null,
    usage: usageOf(script),
  };
}

function frames(script: Script, model: string): Frame[] {
  const out: Frame[] = [];
  const send = (
    kind: FrameKind,
    event: { readonly type: Anthropic.RawMessageStreamEvent["type"] } & Record<string, unknown>,
  ): void => {
    out.push({ kind, text: `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n` });
  };
  const usage = usageOf(script);
  const message = {
    ...whole(script, model),
    content: [],
    stop_reason: null,
    usage: { ...usage, output_tokens: 1 },
  };
  send("start", { type: "message_start", message });
  let index = 0;
  const block = (first: object, deltas: readonly object[]): void => {
    send("start", { type: "content_block_start", index, content_block: first });
    for (const delta of deltas) send("content", { type: "content_block_delta", index, delta });
    send("start", { type: "content_block_stop", index });
    index++;
  };
  if (script.text !== undefined) {
    block(
      { type: "text", text: "" } satisfies Partial<Anthropic.TextBlock>,
      script.text.map((text) => ({ type: "text_delta", text }) satisfies Anthropic.TextDelta),
    );
  }
  for (const { id, name, args } of script.toolCalls ?? []) {
    const text = JSON.stringify(args);
    const half = Math.ceil(text.length / 2);
    block(
      { type: "tool_use", id, name, input: {} } satisfies Partial<Anthropic.ToolUseBlock>,
      [text.slice(0, half), text.slice(half)].map(
        (partial_json) =>
          ({ type: "input_json_delta", partial_json }) satisfies Anthropic.InputJSONDelta,
      ),
    );
  }
  const stop_reason = (script.toolCalls ?? []).length === 0 ? "end_turn" : "tool_use";
  // Anthropic's usage is part of the finish; for holds and cuts it counts as both.
  send("usage", { type: "message_delta", delta: { stop_reason, stop_sequence: null }, usage });
  send("end", { type: "message_stop" });
  return out;
}

/** https://docs.claude.com/en/api/errors */
const TYPES: Readonly<Record<number, Anthropic.ErrorType>> = {
  400: "invalid_request_error",
  401: "authentication_error",
  404: "not_found_error",
  413: "invalid_request_error",
  429: "rate_limit_error",
  529: "overloaded_error",
};

function error({ status, message }: ErrorScript): unknown {
  return {
    type: "error",
    error: { type: TYPES[status] ?? "api_error", message },
    request_id: "req_fake",
  };
}

export const anthropicShapes: Shapes = {
  isStream: (_path, body) => (body as { stream?: boolean }).stream === true,
  whole,
  frames,
  error,
};
