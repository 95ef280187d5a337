/** Turns as the `messages` of a chat completions request. */
import { type ChangeLog, unsupported } from "../changes.ts";
import { toMediaUrl } from "../media.ts";
import type { Block, DocumentBlock, ToolResultBlock, Turn } from "../model.ts";
import { acceptedId } from "../tool-ids.ts";
import { orderResults } from "../turns.ts";

/** OpenAI refuses longer ids. */
const TOOL_ID = /^[^]{1,40}$/;

export function serialiseMessages(turns: readonly Turn[], changes: ChangeLog): object[] {
  let calls: readonly Block[] = [];
  return turns.flatMap((turn) => {
    switch (turn.role) {
      case "system":
        return [{ role: "system", content: textOf(turn.content, "\n") }];
      case "assistant":
        calls = turn.content;
        return serialiseAssistant(turn, changes);
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

function serialiseAssistant({ content }: Turn, changes: ChangeLog): object[] {
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
    changes.note("reasoning of another provider dropped: OpenAI does not take it back");
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
              id: acceptedId(call.id, TOOL_ID),
              type: "function",
              function: { name: call.name, arguments: call.arguments },
            })),
          }),
    },
  ];
}

function serialiseUser(content: readonly Block[], param: string): object[] {
  const results = content.filter((block) => block.kind === "tool_result");
  const messages = results.map(serialiseResult);
  const rest = [
    ...results.flatMap(mediaOfResult),
    ...content.filter((block) => block.kind !== "tool_result"),
  ];
  if (rest.length === 0) return messages;
  const [first] = rest;
  const parts =
    first?.kind === "text" && rest.length === 1
      ? first.text
      : rest.map((block) => serialisePart(block, param));
  return [...messages, { role: "user", content: parts }];
}

/** OpenAI has no flag for a failed call: the text contains the failure. */
function serialiseResult(result: ToolResultBlock): object {
  const text = result.content
    .map((block) => (block.kind === "text" ? block.text : `[${block.kind}: see below]`))
    .join("\n");
  return {
    role: "tool",
    tool_call_id: acceptedId(result.callId, TOOL_ID),
    content: result.isError ? `Error: ${text}` : text,
  };
}

/**
 * The images and documents of a result. A tool message contains only text, so they follow in a user
 * message, each call's under its id.
 */
function mediaOfResult({ callId, content }: ToolResultBlock): Block[] {
  const media = content.filter((block) => block.kind !== "text");
  if (media.length === 0) return [];
  const id = acceptedId(callId, TOOL_ID);
  return [{ kind: "text", text: `Result of the tool call ${id}:` }, ...media];
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
