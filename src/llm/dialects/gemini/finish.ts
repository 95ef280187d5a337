/** Gemini's `finishReason` and the model's finish. */
import type { Finish, UpstreamError } from "../model.ts";

export type ParsedFinish =
  | { readonly kind: "finish"; readonly finish: Finish }
  | { readonly kind: "failed"; readonly error: UpstreamError };

/**
 * Only `STOP` is a normal stop: every other and every future reason is shown as a truncated or
 * refused answer.
 */
export function parseFinish(
  reason: string,
  message: string | undefined,
  hasCalls: boolean,
): ParsedFinish {
  switch (reason) {
    case "STOP":
      return { kind: "finish", finish: hasCalls ? { kind: "tool_calls" } : { kind: "stop" } };
    case "MAX_TOKENS":
      return { kind: "finish", finish: { kind: "length" } };
    // The model failed to call a tool correctly: no other dialect has a finish reason for that, so
    // it is an error.
    case "MALFORMED_FUNCTION_CALL":
    case "UNEXPECTED_TOOL_CALL":
    case "TOO_MANY_TOOL_CALLS":
      return {
        kind: "failed",
        error: {
          status: 502,
          code: reason,
          message: message ?? `the model's tool call failed: ${reason}`,
          param: undefined,
        },
      };
    default:
      return {
        kind: "finish",
        finish: { kind: "refusal", explanation: message ?? `the answer was withheld: ${reason}` },
      };
  }
}

export interface FinishFields {
  readonly finishReason: string;
  readonly finishMessage?: string;
}

export function serialiseFinish(finish: Finish): FinishFields {
  switch (finish.kind) {
    case "stop":
    case "stop_sequence":
    case "tool_calls":
      return { finishReason: "STOP" };
    case "length":
      return { finishReason: "MAX_TOKENS" };
    case "refusal":
      return {
        finishReason: "SAFETY",
        ...(finish.explanation === undefined ? {} : { finishMessage: finish.explanation }),
      };
  }
}
