/** A chat completion into the model. Field names: `ChatCompletion` of the openai SDK. */
import { isObject } from "../fields.ts";
import type { JsonObject } from "../fields.ts";
import { UpstreamFormatError } from "../model.ts";
import type { Block, ChatResponse } from "../model.ts";
import { redactSecrets } from "../redact.ts";
import { parseError } from "./errors.ts";
import { parseFinish } from "./finish.ts";
import { parseUsage } from "./usage.ts";

export function parseResponse(body: unknown): ChatResponse {
  const choices = isObject(body) ? body["choices"] : undefined;
  const choice: unknown = Array.isArray(choices) ? choices[0] : undefined;
  const message = isObject(choice) ? choice["message"] : undefined;
  const reason = isObject(choice) ? choice["finish_reason"] : undefined;
  if (!isObject(body) || !isObject(message) || typeof reason !== "string") {
    throw new UpstreamFormatError(
      errorOf(body) ?? "the upstream's answer is not a chat completion",
    );
  }
  const calls = Array.isArray(message["tool_calls"])
    ? message["tool_calls"].filter(isObject).map(parseCall)
    : [];
  const refusal = textOf(message["refusal"]);
  const content: Block[] = [];
  // DeepSeek, vLLM and others send `reasoning_content`, OpenRouter and newer vLLM `reasoning`.
  const thinking = textOf(message["reasoning_content"]) ?? textOf(message["reasoning"]);
  if (thinking !== undefined)
    content.push({ kind: "thinking", vendor: "openai", text: thinking, signature: undefined });
  const text = textOf(message["content"]);
  if (text !== undefined) content.push({ kind: "text", text });
  if (refusal !== undefined) content.push({ kind: "refusal", text: refusal });
  content.push(...calls);
  return {
    id: textOf(body["id"]),
    model: textOf(body["model"]),
    content,
    finish: parseFinish(reason, { hasCalls: calls.length > 0, refusal }),
    usage: parseUsage(body["usage"]),
  };
}

/** Some gateways with this dialect answer 200 with an error inside. */
function errorOf(body: unknown): string | undefined {
  const message =
    isObject(body) && body["error"] !== undefined ? parseError(502, body)?.message : undefined;
  return message === undefined ? undefined : redactSecrets(message);
}

function parseCall(call: JsonObject, index: number): Block {
  const named = call["function"];
  if (!isObject(named) || typeof named["name"] !== "string") {
    throw new UpstreamFormatError("the upstream's answer calls something that is not a function");
  }
  const text = typeof named["arguments"] === "string" ? named["arguments"].trim() : "";
  return {
    kind: "tool_call",
    id: textOf(call["id"]) ?? `call_${index}`,
    name: named["name"],
    arguments: text === "" ? "{}" : text,
  };
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}
