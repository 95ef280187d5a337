/** Blocks of a conversation as Anthropic's content blocks. */
import { type ChangeLog, unsupported } from "../changes.ts";
import type { Block, CacheMark, DocumentBlock, ImageBlock, ResultContent } from "../model.ts";
import { acceptedId } from "../tool-ids.ts";
import { argumentsObject } from "../tool-arguments.ts";

/** The vendor's own pattern of `tool_use.id`. */
const TOOL_ID = /^[a-zA-Z0-9_-]+$/;

export function cacheControl(mark: CacheMark): object {
  return { type: "ephemeral", ...(mark.ttl === undefined ? {} : { ttl: mark.ttl }) };
}

function cached(mark: CacheMark | undefined): object {
  return mark === undefined ? {} : { cache_control: cacheControl(mark) };
}

/** Anthropic refuses empty texts and foreign signatures: both are omitted. */
export function serialiseBlocks(content: readonly Block[], changes: ChangeLog): object[] {
  return content.flatMap((block) => serialiseBlock(block, changes));
}

function serialiseBlock(block: Block, changes: ChangeLog): object[] {
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
      return [serialiseImage(block, changes)];
    case "document":
      return [serialiseDocument(block)];
    case "audio":
      throw unsupported(block.param, "is audio, which has no equivalent at Anthropic");
    case "thinking":
      if (block.signature?.vendor !== "anthropic") return dropForeign(changes);
      return [{ type: "thinking", thinking: block.text, signature: block.signature.value }];
    case "redacted":
      if (block.signature.vendor !== "anthropic") return dropForeign(changes);
      return [{ type: "redacted_thinking", data: block.signature.value }];
    case "tool_call":
      return [
        {
          type: "tool_use",
          id: acceptedId(block.id, TOOL_ID),
          name: block.name,
          input: argumentsObject(block.arguments) ?? {},
          ...cached(block.cache),
        },
      ];
    case "tool_result":
      return [
        {
          type: "tool_result",
          tool_use_id: acceptedId(block.callId, TOOL_ID),
          content: serialiseResult(block.content, changes),
          ...(block.isError ? { is_error: true } : {}),
          ...cached(block.cache),
        },
      ];
  }
}

function dropForeign(changes: ChangeLog): [] {
  const note = "reasoning of another provider dropped: Anthropic accepts only its own signatures";
  changes.note(note);
  return [];
}

function serialiseResult(content: readonly ResultContent[], changes: ChangeLog): string | object[] {
  const [first] = content;
  if (first?.kind === "text" && content.length === 1 && first.cache === undefined)
    return first.text;
  return serialiseBlocks(content, changes);
}

function serialiseImage(image: ImageBlock, changes: ChangeLog): object {
  if (image.detail !== undefined)
    changes.note("image detail dropped: Anthropic's OpenAI-compatible endpoint ignores it");
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
