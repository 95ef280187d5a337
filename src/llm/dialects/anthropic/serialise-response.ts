/** The model into a message. Field names: `Message` of @anthropic-ai/sdk. */
import { UpstreamFormatError } from "../model.ts";
import type { Block, ChatResponse, ResponseIdentity } from "../model.ts";
import { wrap } from "../signature.ts";
import { argumentsObject } from "../tool-arguments.ts";
import { serialiseFinish } from "./finish.ts";
import { serialiseUsage } from "./usage.ts";

export function serialiseResponse(response: ChatResponse, { id, model }: ResponseIdentity): object {
  return {
    id: `msg_${id}`,
    type: "message",
    role: "assistant",
    model,
    content: response.content.flatMap((block) => serialiseBlock(block, response)),
    ...serialiseFinish(response.finish),
    usage: serialiseUsage(response.usage),
  };
}

function serialiseBlock(block: Block, response: ChatResponse): object[] {
  switch (block.kind) {
    case "text": {
      const text = block.text === "" ? [] : [{ type: "text", text: block.text, citations: null }];
      return block.signature === undefined
        ? text
        : [...text, { type: "redacted_thinking", data: wrap(block.signature, "text") }];
    }
    case "refusal":
      return [{ type: "text", text: block.text, citations: null }];
    case "thinking":
      return [
        {
          type: "thinking",
          thinking: block.text,
          signature: wrap(
            block.signature ?? { vendor: block.vendor ?? "openai", value: "" },
            "own",
          ),
        },
      ];
    case "redacted":
      return [{ type: "redacted_thinking", data: wrap(block.signature, "own") }];
    case "tool_call": {
      const input = argumentsObject(block.arguments);
      if (input === undefined) {
        // Truncated by the output limit, as the stop reason shows: an incomplete object is not a
        // call.
        if (response.finish.kind === "length") return [];
        throw new UpstreamFormatError(
          `the arguments of the call to ${block.name} are not a JSON object`,
        );
      }
      const call = { type: "tool_use", id: block.id, name: block.name, input };
      return block.signature === undefined
        ? [call]
        : [{ type: "redacted_thinking", data: wrap(block.signature, "call") }, call];
    }
    case "image":
    case "document":
    case "audio":
    case "tool_result":
      throw new UpstreamFormatError(
        `the upstream's answer has content that an Anthropic message cannot hold: ${block.kind}`,
      );
  }
}
