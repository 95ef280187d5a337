/** Blocks of a conversation as Anthropic's content blocks. */
import { unsupported } from "../leftovers.ts";
import type { Block, CacheMark, DocumentBlock, ImageBlock, ResultContent } from "../model.ts";
import { argumentsObject } from "../tool-arguments.ts";

export function cacheControl(mark: CacheMark): object {
  return { type: "ephemeral", ...(mark.ttl === undefined ? {} : { ttl: mark.ttl }) };
}

function cached(mark: CacheMark | undefined): object {
  return mark === undefined ? {} : { cache_control: cacheControl(mark) };
}

/** Anthropic refuses empty texts and foreign signatures: both are omitted. */
export function serialiseBlocks(content: readonly Block[], notes: string[]): object[] {
  return content.flatMap((block) => serialiseBlock(block, notes));
}

function serialiseBlock(block: Block, notes: string[]): object[] {
  switch (block.kind) {
    case "text":
    case "refusal":
      return block.text === ""
        ? []
        : [
            {
              type: "text",
              text: block.text,
              ...(block.kind === "text" ? cached(block.cache) : {}),
            },
          ];
    case "image":
      return [serialiseImage(block, notes)];
    case "document":
      return [serialiseDocument(block)];
    case "audio":
      throw unsupported(block.param, "is audio, which has no equivalent at Anthropic");
    case "thinking":
      if (block.signature?.vendor !== "anthropic") return dropForeign(notes);
      return [{ type: "thinking", thinking: block.text, signature: block.signature.value }];
    case "redacted":
      if (block.signature.vendor !== "anthropic") return dropForeign(notes);
      return [{ type: "redacted_thinking", data: block.signature.value }];
    case "tool_call":
      return [
        {
          type: "tool_use",
          id: block.id,
          name: block.name,
          input: argumentsObject(block.arguments) ?? {},
          ...cached(block.cache),
        },
      ];
    case "tool_result":
      return [
        {
          type: "tool_result",
          tool_use_id: block.callId,
          content: serialiseResult(block.content, notes),
          ...(block.isError ? { is_error: true } : {}),
          ...cached(block.cache),
        },
      ];
  }
}

function dropForeign(notes: string[]): [] {
  const note = "reasoning of another provider dropped: Anthropic accepts only its own signatures";
  if (!notes.includes(note)) notes.push(note);
  return [];
}

function serialiseResult(content: readonly ResultContent[], notes: string[]): string | object[] {
  const [first] = content;
  if (first?.kind === "text" && content.length === 1 && first.cache === undefined)
    return first.text;
  return serialiseBlocks(content, notes);
}

function serialiseImage(image: ImageBlock, notes: string[]): object {
  if (image.detail !== undefined)
    notes.push("image detail dropped: Anthropic's OpenAI-compatible endpoint ignores it");
  const { media } = image;
  const source =
    media.kind === "url"
      ? { type: "url", url: media.url }
      : { type: "base64", media_type: media.mimeType, data: media.data };
  return { type: "image", source, ...cached(image.cache) };
}

function serialiseDocument(document: DocumentBlock): object {
  return {
    type: "document",
    source: documentSource(document),
    ...(document.title === undefined ? {} : { title: document.title }),
    ...cached(document.cache),
  };
}

function documentSource({ media, param }: DocumentBlock): object {
  if (media.kind === "url") return { type: "url", url: media.url };
  if (media.mimeType === "application/pdf")
    return { type: "base64", media_type: media.mimeType, data: media.data };
  if (media.mimeType.startsWith("text/")) {
    return {
      type: "text",
      media_type: "text/plain",
      data: Buffer.from(media.data, "base64").toString("utf8"),
    };
  }
  throw unsupported(
    param,
    `is a document of type ${media.mimeType} which has no equivalent at Anthropic (PDF and ` +
      "text have)",
  );
}
