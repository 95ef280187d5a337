/** The `Response` object of the openai SDK: whole answers, and the events of a stream. */
import type { Finish, ModelUsage, ResponseIdentity } from "../model.ts";
import { DEFAULT_SETTINGS } from "./echo.ts";
import { serialiseUsage } from "./usage.ts";

export interface ResponseState {
  readonly status: "in_progress" | "completed" | "incomplete" | "failed";
  readonly output: readonly object[];
  readonly usage?: ModelUsage | undefined;
  readonly incompleteReason?: "max_output_tokens" | "content_filter" | undefined;
  readonly error?: { readonly code: string; readonly message: string };
}

export function responseObject(
  { id, model, now, echo }: ResponseIdentity,
  { status, output, usage, incompleteReason, error }: ResponseState,
): object {
  return {
    id: `resp_${id}`,
    object: "response",
    created_at: Math.floor(now / 1000),
    status,
    background: false,
    error: error ?? null,
    incomplete_details: incompleteReason === undefined ? null : { reason: incompleteReason },
    instructions: null,
    model,
    output,
    previous_response_id: null,
    service_tier: "default",
    store: false,
    tools: [],
    ...DEFAULT_SETTINGS,
    ...echo?.settings,
    usage: usage === undefined ? null : serialiseUsage(usage),
  };
}

/**
 * Returns how a response ended. A refusal in the model's own words is a complete answer, as at
 * OpenAI; without any, the vendor's filter stopped it.
 */
export function endOf(
  finish: Finish,
  hasRefusal: boolean,
): Pick<ResponseState, "status" | "incompleteReason"> {
  switch (finish.kind) {
    case "stop":
    case "stop_sequence":
    case "tool_calls":
      return { status: "completed" };
    case "length":
      return { status: "incomplete", incompleteReason: "max_output_tokens" };
    case "refusal":
      return hasRefusal
        ? { status: "completed" }
        : { status: "incomplete", incompleteReason: "content_filter" };
  }
}
