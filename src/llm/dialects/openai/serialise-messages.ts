/** Turns as the `messages` of a chat completions request. */
import { unsupported } from "../leftovers.ts";
import { toMediaUrl } from "../media.ts";
import type { Block, DocumentBlock, ToolResultBlock, Turn } from "../model.ts";
import { orderResults } from "../turns.ts";

export function serialiseMessages(turns: readonly Turn[], notes: string[]): object[] {
  let calls: readonly Block[] = [];
  return turns.flatMap((turn) => {
    switch (turn.role) {
      case "system":
        return [{ role: "system", content: textOf(turn.content, "\n") }];
      case "assistant":
        calls = turn.content;
        return serialiseAssistant(turn, notes);
      case "user":
        return serialiseUser(orderResults(turn.content, calls), turn.param);
    }
  });
}

/**
 * Several blocks become one string, because some servers with this dialect do not support parts.
 */
function textOf(content: readonly Block[], separator: string): string {
  return content
    .flatMap((block) => (block.kind === "text" || block.kind === "refusal" ? [block.text] : []))
    .join(separator);
}

function serialiseAssistant({ content }: Turn, notes: string[]): object[] {
  const text = textOf(content, "");
  const calls = content.filter((block) => block.kind === "tool_call");
  const own = content
    .filter((block) => block.kind === "thinking")
    .filter(({ vendor }) => vendor === "openai");
  if (
    content.some(
      (block) =>
        block.kind === "redacted" || (block.kind === "thinking" && block.vendor !== "openai"),
    )
  ) {
    notes.push("reasoning of another provider dropped: OpenAI does not take it back");
  }
  if (text === "" && calls.length === 0) return [];
  return [
    {
      role: "assistant",
      content: text === "" ? null : text,
      ...(own.length === 0 ? {} : { reasoning_content: own.map((block) => block.text).join("") }),
      ...(calls.length === 0
        ? {}
        : {
            tool_calls: calls.map((call) => ({
              id: call.id,
              type: "function",
              function: { name: call.name, arguments: call.arguments },
            })),
          }),
    },
  ];
}

function serialiseUser(content: readonly Block[], param: string): object[] {
  const results = content.filter((block) => block.kind === "tool_result").map(serialiseResult);
  const rest = content.filter((block) => block.kind !== "tool_result");
  if (rest.length === 0) return results;
  const [first] = rest;
  const parts =
    first?.kind === "text" && rest.length === 1
      ? first.text
      : rest.map((block) => serialisePart(block, param));
  return [...results, { role: "user", content: parts }];
}

/** OpenAI has no flag for a failed call: the text contains the failure. */
function serialiseResult(result: ToolResultBlock): object {
  const texts = result.content.map((block) => {
    if (block.kind === "text") return block.text;
    throw unsupported(
      result.param.replace(/tool_use_id$/, "content"),
      `holds a tool result with ${block.kind === "image" ? "an image" : "a document"}, ` +
        "which OpenAI does not take",
    );
  });
  const text = texts.join("\n");
  return {
    role: "tool",
    tool_call_id: result.callId,
    content: result.isError ? `Error: ${text}` : text,
  };
}

function serialisePart(block: Block, param: string): object {
  switch (block.kind) {
    case "text":
    case "refusal":
      return { type: "text", text: block.text };
    case "image":
      return {
        type: "image_url",
        image_url: {
          url: toMediaUrl(block.media),
          ...(block.detail === undefined ? {} : { detail: block.detail }),
        },
      };
    case "document":
      return serialiseDocument(block);
    case "audio":
      return {
        type: "input_audio",
        input_audio: { data: block.data, format: block.mimeType === "audio/wav" ? "wav" : "mp3" },
      };
    case "thinking":
    case "redacted":
    case "tool_call":
    case "tool_result":
      throw unsupported(
        param,
        `holds a block of kind ${block.kind}, which a user message at OpenAI cannot`,
      );
  }
}

function serialiseDocument({ media, title, param }: DocumentBlock): object {
  if (media.kind === "url")
    throw unsupported(param, "is a document by URL, which OpenAI does not take");
  const filename =
    title ?? (media.mimeType === "application/pdf" ? "document.pdf" : "document.txt");
  return { type: "file", file: { filename, file_data: toMediaUrl(media) } };
}
