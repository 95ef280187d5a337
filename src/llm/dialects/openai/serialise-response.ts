/** The model into a chat completion. Field names: `ChatCompletion` of the openai SDK. */
import { UpstreamFormatError } from "../model.ts";
import type { ChatResponse, ResponseIdentity } from "../model.ts";
import { serialiseFinish } from "./finish.ts";
import { serialiseReasoning } from "./reasoning-details.ts";
import { serialiseUsage } from "./usage.ts";

export function serialiseResponse(
  response: ChatResponse,
  { id, model, now }: ResponseIdentity,
): object {
  const texts: string[] = [];
  const calls: object[] = [];
  const refusals: string[] = [];
  for (const block of response.content) {
    switch (block.kind) {
      case "text":
        texts.push(block.text);
        break;
      case "refusal":
        refusals.push(block.text);
        break;
      case "tool_call":
        calls.push({
          id: block.id,
          type: "function",
          function: { name: block.name, arguments: block.arguments },
        });
        break;
      case "thinking":
      case "redacted":
        break;
      case "image":
      case "document":
      case "audio":
      case "tool_result":
        throw new UpstreamFormatError(
          `the upstream's answer has content that a chat completion cannot hold: ${block.kind}`,
        );
    }
  }
  const { finish } = response;
  if (refusals.length === 0 && finish.kind === "refusal" && finish.explanation !== undefined)
    refusals.push(finish.explanation);
  const message = {
    role: "assistant",
    content: texts.length === 0 ? null : texts.join(""),
    refusal: refusals.length === 0 ? null : refusals.join(""),
    ...serialiseReasoning(response.content),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  };
  return {
    id: `chatcmpl-${id}`,
    object: "chat.completion",
    created: Math.floor(now / 1000),
    model,
    choices: [{ index: 0, message, logprobs: null, finish_reason: serialiseFinish(finish) }],
    ...(response.usage === undefined ? {} : { usage: serialiseUsage(response.usage) }),
  };
}
