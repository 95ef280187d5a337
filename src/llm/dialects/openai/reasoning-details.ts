/**
 * Reasoning in this dialect, which has no field of its own for it: `reasoning_content` (text, as in
 * DeepSeek and vLLM) plus the opaque list `reasoning_details` (as in OpenRouter), whose `format`
 * names the vendor. A client that replays the message unchanged preserves the signatures.
 */
import type { DialectName } from "../dialect.ts";
import type { Fields } from "../fields.ts";
import type { Block, Leftover, RedactedBlock, Signature, ThinkingBlock } from "../model.ts";

const FORMATS: Readonly<Record<DialectName, string>> = {
  openai: "unknown",
  anthropic: "anthropic-claude-v1",
  gemini: "google-gemini-v1",
};

export type ReasoningDetail =
  | {
      readonly type: "reasoning.text";
      readonly text: string;
      readonly signature?: string;
      readonly format: string;
      readonly index: number;
    }
  /** `id` names the tool call of the data; `text` is the id of the answer's text. */
  | {
      readonly type: "reasoning.encrypted";
      readonly data: string;
      readonly id?: string;
      readonly format: string;
      readonly index: number;
    };

/** Represents the answer's text in place of a call's id. */
const TEXT_ID = "text";

export interface ReplayedReasoning {
  readonly blocks: readonly (ThinkingBlock | RedactedBlock)[];
  readonly callSignatures: ReadonlyMap<string, Signature>;
  readonly textSignature: Signature | undefined;
}

export function parseReasoningDetails(message: Fields, leftovers: Leftover[]): ReplayedReasoning {
  // OpenRouter and newer vLLM send `reasoning`, and their clients replay it.
  const alias = message.string("reasoning");
  const text = message.string("reasoning_content") ?? alias;
  const blocks: (ThinkingBlock | RedactedBlock)[] = [];
  const callSignatures = new Map<string, Signature>();
  let textSignature: Signature | undefined;
  message.each("reasoning_details", (detail) => {
    const type = detail.oneOf("type", [
      "reasoning.text",
      "reasoning.encrypted",
      "reasoning.summary",
    ]);
    const vendor = vendorOf(detail.string("format"));
    detail.ignore("index");
    if (type === "reasoning.encrypted") {
      const signature: Signature = { vendor, value: detail.requiredString("data") };
      const id = detail.string("id");
      if (id === undefined) blocks.push({ kind: "redacted", signature });
      else if (id === TEXT_ID) textSignature = signature;
      else callSignatures.set(id, signature);
    } else {
      const value = detail.string("signature");
      detail.ignore("id");
      blocks.push({
        kind: "thinking",
        vendor,
        text: detail.string(type === "reasoning.summary" ? "summary" : "text") ?? "",
        signature: value === undefined ? undefined : { vendor, value },
      });
    }
    detail.rest(leftovers);
  });
  // The text is in both places: the details are the complete ones.
  if (text !== undefined && !blocks.some(({ kind }) => kind === "thinking")) {
    blocks.unshift({ kind: "thinking", vendor: undefined, text, signature: undefined });
  }
  return { blocks, callSignatures, textSignature };
}

export function serialiseReasoning(content: readonly Block[]): {
  reasoning_content?: string;
  reasoning_details?: readonly ReasoningDetail[];
} {
  const texts: string[] = [];
  const details: ReasoningDetail[] = [];
  for (const block of content) {
    switch (block.kind) {
      case "thinking":
        texts.push(block.text);
        if (block.signature !== undefined)
          details.push(textDetail(block.text, block.signature, details.length));
        break;
      case "redacted":
        details.push(encryptedDetail(block.signature, undefined, details.length));
        break;
      case "tool_call":
        if (block.signature !== undefined)
          details.push(encryptedDetail(block.signature, block.id, details.length));
        break;
      case "text":
        if (block.signature !== undefined)
          details.push(encryptedDetail(block.signature, TEXT_ID, details.length));
        break;
      default:
        break;
    }
  }
  const text = texts.join("");
  return {
    ...(text === "" ? {} : { reasoning_content: text }),
    ...(details.length === 0 ? {} : { reasoning_details: details }),
  };
}

export function textDetail(text: string, signature: Signature, index: number): ReasoningDetail {
  return {
    type: "reasoning.text",
    text,
    signature: signature.value,
    format: FORMATS[signature.vendor],
    index,
  };
}

export function encryptedDetail(
  signature: Signature,
  callId: string | undefined,
  index: number,
): ReasoningDetail {
  return {
    type: "reasoning.encrypted",
    data: signature.value,
    ...(callId === undefined ? {} : { id: callId }),
    format: FORMATS[signature.vendor],
    index,
  };
}

/** The id under which the signature of the answer's text is stored. */
export const TEXT_SIGNATURE_ID = TEXT_ID;

function vendorOf(format: string | undefined): DialectName {
  if (format === FORMATS.anthropic) return "anthropic";
  return format === FORMATS.gemini ? "gemini" : "openai";
}
