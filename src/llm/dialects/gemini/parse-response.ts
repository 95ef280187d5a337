/**
 * A generateContent response into the model. Field names: `GenerateContentResponse` of
 * @google/genai.
 */
import { isObject } from "../fields.ts";
import type { JsonObject } from "../fields.ts";
import { UpstreamFormatError } from "../model.ts";
import type { Block, ChatResponse, Finish } from "../model.ts";
import { argumentsText } from "../tool-arguments.ts";
import { parseFinish } from "./finish.ts";
import { parseUsage } from "./usage.ts";

/** `id` is used for the ids of calls, which Gemini before 3 does not send. */
export function parseResponse(body: unknown, id: string): ChatResponse {
  if (!isObject(body)) throw notAnAnswer();
  const candidate: unknown = Array.isArray(body["candidates"]) ? body["candidates"][0] : undefined;
  const shared = {
    id: textOf(body["responseId"]),
    model: textOf(body["modelVersion"]),
    usage: parseUsage(body["usageMetadata"]),
  };
  const blocked = blockedPrompt(body["promptFeedback"]);
  if (!isObject(candidate)) {
    if (blocked === undefined) throw notAnAnswer();
    return { ...shared, content: [], finish: blocked };
  }
  const reason = candidate["finishReason"];
  if (typeof reason !== "string") throw notAnAnswer();
  const content = parseParts(candidate["content"], id);
  const finish = parseFinish(
    reason,
    textOf(candidate["finishMessage"]),
    content.some(({ kind }) => kind === "tool_call"),
  );
  if (finish.kind === "failed") throw new UpstreamFormatError(finish.error.message);
  return { ...shared, content, finish: finish.finish };
}

/** A refused prompt has no candidates. */
export function blockedPrompt(feedback: unknown): Finish | undefined {
  if (!isObject(feedback) || typeof feedback["blockReason"] !== "string") return undefined;
  return {
    kind: "refusal",
    explanation:
      textOf(feedback["blockReasonMessage"]) ??
      `the prompt was blocked: ${feedback["blockReason"]}`,
  };
}

function parseParts(content: unknown, id: string): Block[] {
  const parts =
    isObject(content) && Array.isArray(content["parts"]) ? content["parts"].filter(isObject) : [];
  const blocks: Block[] = [];
  let calls = 0;
  for (const part of parts) {
    const block = parsePart(part, `call_${id}_${calls}`);
    if (block === undefined) continue;
    if (block.kind === "tool_call") calls += 1;
    blocks.push(block);
  }
  return blocks;
}

function parsePart(part: JsonObject, callId: string): Block | undefined {
  const value = textOf(part["thoughtSignature"]);
  const signature = value === undefined ? undefined : ({ vendor: "gemini", value } as const);
  const call = part["functionCall"];
  if (isObject(call)) {
    return {
      kind: "tool_call",
      id: textOf(call["id"]) ?? callId,
      name: textOf(call["name"]) ?? "",
      arguments: argumentsText(call["args"]),
      signature,
    };
  }
  const text = part["text"];
  if (typeof text !== "string") {
    const kind = Object.keys(part).find((key) => key !== "thoughtSignature" && key !== "thought");
    if (kind === undefined)
      return signature === undefined ? undefined : { kind: "text", text: "", signature };
    throw new UpstreamFormatError(
      `the upstream's answer has a part that cannot be translated: ${kind}`,
    );
  }
  if (part["thought"] === true) return { kind: "thinking", vendor: "gemini", text, signature };
  return text === "" && signature === undefined ? undefined : { kind: "text", text, signature };
}

function notAnAnswer(): UpstreamFormatError {
  return new UpstreamFormatError("the upstream's answer is not a Gemini response");
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}
