/** OpenAI's `finish_reason` and the model's finish. */
import type { Finish } from "../model.ts";

/**
 * Some servers, and OpenAI itself for a forced call, send `stop` although the answer calls a tool
 * or refuses.
 */
export function parseFinish(
  reason: string,
  answer: { readonly hasCalls: boolean; readonly refusal: string | undefined },
): Finish {
  switch (reason) {
    case "stop":
      if (answer.refusal !== undefined) return { kind: "refusal", explanation: answer.refusal };
      return answer.hasCalls ? { kind: "tool_calls" } : { kind: "stop" };
    case "tool_calls":
    case "function_call":
      return answer.hasCalls ? { kind: "tool_calls" } : { kind: "stop" };
    case "length":
      return { kind: "length" };
    case "content_filter":
      return { kind: "refusal", explanation: answer.refusal };
    default:
      return { kind: "refusal", explanation: `the model stopped: ${reason}` };
  }
}

/** Some servers write an empty reason where OpenAI writes null. */
export function isReason(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

export function serialiseFinish(
  finish: Finish,
): "stop" | "length" | "tool_calls" | "content_filter" {
  switch (finish.kind) {
    case "stop":
    case "stop_sequence":
      return "stop";
    case "length":
      return "length";
    case "tool_calls":
      return "tool_calls";
    case "refusal":
      return "content_filter";
  }
}
