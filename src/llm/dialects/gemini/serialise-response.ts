/**
 * The model into a generateContent response. Field names: `GenerateContentResponse` of
 * @google/genai.
 */
import { UpstreamFormatError } from "../model.ts";
import type { Block, ChatResponse, ResponseIdentity, Signature } from "../model.ts";
import { wrapBase64 } from "../signature.ts";
import { argumentsObject } from "../tool-arguments.ts";
import { serialiseFinish } from "./finish.ts";
import { serialiseUsage } from "./usage.ts";

export function serialiseResponse(response: ChatResponse, { id, model }: ResponseIdentity): object {
  const parts = response.content.flatMap((block) => serialisePart(block, response));
  return {
    candidates: [
      { content: { role: "model", parts }, ...serialiseFinish(response.finish), index: 0 },
    ],
    ...(response.usage === undefined ? {} : { usageMetadata: serialiseUsage(response.usage) }),
    modelVersion: model,
    responseId: id,
  };
}

function serialisePart(block: Block, response: ChatResponse): object[] {
  switch (block.kind) {
    case "text":
    case "refusal":
      return block.text === "" ? [] : [{ text: block.text }];
    case "thinking":
      return [{ text: block.text, thought: true, ...signed(block.signature) }];
    case "redacted":
      return [{ text: "", thought: true, ...signed(block.signature) }];
    case "tool_call": {
      const args = argumentsObject(block.arguments);
      if (args !== undefined) return [{ functionCall: { id: block.id, name: block.name, args } }];
      // Truncated by the output limit, as the finish reason shows: an incomplete object is not a
      // call.
      if (response.finish.kind === "length") return [];
      throw new UpstreamFormatError(
        `the arguments of the call to ${block.name} are not a JSON object`,
      );
    }
    case "image":
    case "document":
    case "audio":
    case "tool_result":
      throw new UpstreamFormatError(
        `the upstream's answer has content that is not translated to Gemini: ${block.kind}`,
      );
  }
}

function signed(signature: Signature | undefined): object {
  return signature === undefined ? {} : { thoughtSignature: wrapBase64(signature, "own") };
}
