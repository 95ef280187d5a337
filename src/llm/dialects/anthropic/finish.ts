/** Anthropic's `stop_reason` and the model's finish. */
import { isObject } from "../fields.ts";
import type { Finish } from "../model.ts";

export function parseFinish(reason: string, sequence: unknown, details: unknown): Finish {
  switch (reason) {
    case "end_turn":
      return { kind: "stop" };
    case "stop_sequence":
      return typeof sequence === "string" ? { kind: "stop_sequence", sequence } : { kind: "stop" };
    case "tool_use":
      return { kind: "tool_calls" };
    // The turn is not finished: the other dialects cannot express "continue", but all can express a
    // truncation.
    case "max_tokens":
    case "pause_turn":
    case "model_context_window_exceeded":
      return { kind: "length" };
    case "refusal":
      return { kind: "refusal", explanation: explanationOf(details) };
    default:
      return { kind: "refusal", explanation: `the model stopped: ${reason}` };
  }
}

function explanationOf(details: unknown): string | undefined {
  const explanation = isObject(details) ? details["explanation"] : undefined;
  return typeof explanation === "string" ? explanation : undefined;
}

export interface StopFields {
  readonly stop_reason: string;
  readonly stop_sequence: string | null;
  readonly stop_details?: object;
}

export function serialiseFinish(finish: Finish): StopFields {
  switch (finish.kind) {
    case "stop":
      return { stop_reason: "end_turn", stop_sequence: null };
    case "stop_sequence":
      return { stop_reason: "stop_sequence", stop_sequence: finish.sequence };
    case "length":
      return { stop_reason: "max_tokens", stop_sequence: null };
    case "tool_calls":
      return { stop_reason: "tool_use", stop_sequence: null };
    case "refusal":
      return {
        stop_reason: "refusal",
        stop_sequence: null,
        stop_details: { type: "refusal", category: null, explanation: finish.explanation ?? null },
      };
  }
}
