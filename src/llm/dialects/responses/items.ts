/** Items of a response's `output`. Field names: `ResponseOutputItem` of the openai SDK. */
import type { EchoedTool, Signature } from "../model.ts";
import { type SignatureBinding, wrap } from "../signature.ts";
import { definedCall } from "./defined-tools.ts";
import { customInput } from "./tools.ts";

export type ItemStatus = "in_progress" | "completed" | "incomplete";

export type Part =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "refusal"; readonly text: string };

export function partOf({ kind, text }: Part): object {
  return kind === "refusal"
    ? { type: "refusal", refusal: text }
    : { type: "output_text", text, annotations: [], logprobs: [] };
}

export function messageItem(id: string, parts: readonly Part[], status: ItemStatus): object {
  return { id, type: "message", status, role: "assistant", content: parts.map(partOf) };
}

/** `encryptedContent` undefined: not known yet. */
export function reasoningItem(
  id: string,
  text: string,
  encryptedContent: string | undefined,
): object {
  return {
    id,
    type: "reasoning",
    summary: text === "" ? [] : [{ type: "summary_text", text }],
    ...(encryptedContent === undefined ? {} : { encrypted_content: encryptedContent }),
  };
}

/**
 * Returns a reasoning item's `encrypted_content`. It is always sent, because the gateway stores no
 * items: only a client that sends it back keeps the reasoning of a tool loop.
 */
export function encrypted(signature: Signature, binding: SignatureBinding): string {
  return wrap(signature, binding);
}

export interface CalledTool {
  readonly callId: string;
  /** Name at the upstream. */
  readonly name: string;
  /** The tool as the client knows it; undefined for a plain function. */
  readonly tool: EchoedTool | undefined;
}

/** @param text arguments as the upstream wrote them; empty for none, or none yet */
export function callItem(id: string, call: CalledTool, text: string, status: ItemStatus): object {
  const { callId, tool } = call;
  const namespace = tool?.namespace === undefined ? {} : { namespace: tool.namespace };
  const named = { name: tool?.name ?? call.name, ...namespace };
  switch (tool?.kind) {
    case undefined:
    case "function":
      return { id, type: "function_call", status, call_id: callId, ...named, arguments: text };
    case "custom": {
      const input = customInput(text);
      return { id, type: "custom_tool_call", status, call_id: callId, ...named, input };
    }
    case "shell":
    case "local_shell":
    case "apply_patch":
      return {
        id,
        type: `${tool.kind}_call`,
        status,
        call_id: callId,
        ...definedCall(tool.kind, text),
      };
  }
}

/** Returns the prefix of the ids of a tool's calls. */
export function callPrefix(tool: EchoedTool | undefined): IdPrefix {
  switch (tool?.kind) {
    case undefined:
    case "function":
      return "fc";
    case "custom":
      return "ctc";
    case "shell":
      return "sh";
    case "local_shell":
      return "lsh";
    case "apply_patch":
      return "apc";
  }
}

type IdPrefix = "msg" | "rs" | "fc" | "ctc" | "sh" | "lsh" | "apc";

/** Names the items of an answer: unique, and within the 64 characters that OpenAI takes back. */
export class ItemIds {
  readonly #callId: string;
  #next = 0;

  constructor(callId: string) {
    this.#callId = callId;
  }

  take(prefix: IdPrefix): { readonly id: string; readonly index: number } {
    const index = this.#next;
    this.#next += 1;
    return { id: `${prefix}_${this.#callId}_${index}`, index };
  }
}
