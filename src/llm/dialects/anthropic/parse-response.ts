/** A message into the model. Field names: `Message` of @anthropic-ai/sdk. */
import { isObject } from "../fields.ts";
import type { JsonObject } from "../fields.ts";
import { UpstreamFormatError } from "../model.ts";
import type { Block, ChatResponse } from "../model.ts";
import { argumentsText } from "../tool-arguments.ts";
import { parseFinish } from "./finish.ts";
import { parseUsage } from "./usage.ts";

export function parseResponse(body: unknown): ChatResponse {
  if (
    !isObject(body) ||
    !Array.isArray(body["content"]) ||
    typeof body["stop_reason"] !== "string"
  ) {
    throw new UpstreamFormatError("the upstream's answer is not an Anthropic message");
  }
  return {
    id: typeof body["id"] === "string" ? body["id"] : undefined,
    model: typeof body["model"] === "string" ? body["model"] : undefined,
    content: body["content"].filter(isObject).map(parseBlock),
    finish: parseFinish(body["stop_reason"], body["stop_sequence"], body["stop_details"]),
    usage: parseUsage(body["usage"]),
  };
}

function parseBlock(block: JsonObject): Block {
  switch (block["type"]) {
    case "text":
      return { kind: "text", text: stringOf(block["text"]) };
    case "thinking":
      return {
        kind: "thinking",
        vendor: "anthropic",
        text: stringOf(block["thinking"]),
        signature: { vendor: "anthropic", value: stringOf(block["signature"]) },
      };
    case "redacted_thinking":
      return {
        kind: "redacted",
        signature: { vendor: "anthropic", value: stringOf(block["data"]) },
      };
    case "tool_use":
      return {
        kind: "tool_call",
        id: stringOf(block["id"]),
        name: stringOf(block["name"]),
        arguments: argumentsText(block["input"]),
      };
    default:
      throw new UpstreamFormatError(
        `the upstream's answer has a block of an unknown type: ${String(block["type"])}`,
      );
  }
}

function stringOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
