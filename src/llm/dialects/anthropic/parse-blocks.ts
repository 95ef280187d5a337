/** Anthropic's content blocks into the model's. */
import { BadRequestError } from "../dialect.ts";
import type { Fields } from "../fields.ts";
import { mimeTypeOfPath } from "../media.ts";
import type {
  Block,
  CacheMark,
  Leftover,
  Media,
  ResultContent,
  Signature,
  TextBlock,
  ThinkingBlock,
} from "../model.ts";
import { unwrap } from "../signature.ts";
import { argumentsText } from "../tool-arguments.ts";

export function parseCache(fields: Fields): CacheMark | undefined {
  const control = fields.fields("cache_control");
  if (control === undefined) return undefined;
  control.oneOf("type", ["ephemeral"]);
  return { ttl: control.oneOf("ttl", ["5m", "1h"]) };
}

export function parseSystem(fields: Fields, leftovers: Leftover[]): TextBlock[] {
  const system = fields.raw("system");
  if (system === undefined || system === "") return [];
  if (typeof system === "string") return [{ kind: "text", text: system }];
  return fields.each("system", (block) => {
    block.oneOf("type", ["text"]);
    return parseText(block, leftovers);
  });
}

export function parseContent(message: Fields, leftovers: Leftover[]): Block[] {
  const content = message.raw("content");
  if (typeof content === "string") return content === "" ? [] : [{ kind: "text", text: content }];
  if (content === undefined) message.fail("content", "a string or a list of blocks");
  const blocks: Block[] = [];
  /** Gemini's signature of a call is a redacted block before it. */
  let pending: Signature | undefined;
  message.each("content", (fields) => {
    const block = parseBlock(fields, leftovers);
    if (block.kind !== "redacted") {
      blocks.push(block.kind === "tool_call" ? { ...block, signature: pending } : block);
      if (block.kind === "tool_call") pending = undefined;
      return;
    }
    const { signature, binding } = unwrap(block.signature.value, "anthropic");
    const last = blocks.at(-1);
    if (binding === "call") pending = signature;
    else if (binding === "text" && last?.kind === "text")
      blocks[blocks.length - 1] = { ...last, signature };
    else blocks.push({ kind: "redacted", signature });
  });
  return blocks;
}

function parseBlock(block: Fields, leftovers: Leftover[]): Block {
  const type = block.requiredString("type");
  switch (type) {
    case "text":
      return parseText(block, leftovers);
    case "image":
      return parseImage(block, leftovers);
    case "document":
      return parseDocument(block, leftovers);
    case "thinking":
      return done(block, leftovers, {
        kind: "thinking",
        text: block.requiredString("thinking"),
        ...parseSignature(block.string("signature")),
      });
    case "redacted_thinking":
      return done(block, leftovers, {
        kind: "redacted",
        signature: { vendor: "anthropic", value: block.requiredString("data") },
      });
    case "tool_use":
      return parseToolUse(block, leftovers);
    case "tool_result":
      return parseToolResult(block, leftovers);
    default:
      throw new BadRequestError(
        `${block.at("type")}: ${type} has no equivalent at this model's provider`,
        block.at("type"),
        "unsupported_by_upstream",
      );
  }
}

/** A wrapped signature without a value names a vendor without a signature. */
function parseSignature(value: string | undefined): Pick<ThinkingBlock, "vendor" | "signature"> {
  const { signature } = unwrap(value ?? "", "anthropic");
  return { vendor: signature.vendor, signature: signature.value === "" ? undefined : signature };
}

function done<T extends Block>(fields: Fields, leftovers: Leftover[], block: T): T {
  fields.rest(leftovers);
  return block;
}

function parseText(block: Fields, leftovers: Leftover[]): TextBlock {
  block.ignore("type", "citations");
  return done(block, leftovers, {
    kind: "text",
    text: block.requiredString("text"),
    cache: parseCache(block),
  });
}

function parseImage(block: Fields, leftovers: Leftover[]): ResultContent {
  const source = block.fields("source") ?? block.fail("source", "a JSON object");
  return done(block, leftovers, {
    kind: "image",
    media: parseSource(source, leftovers),
    cache: parseCache(block),
  });
}

function parseDocument(block: Fields, leftovers: Leftover[]): ResultContent {
  const source = block.fields("source") ?? block.fail("source", "a JSON object");
  const citations = block.fields("citations");
  if (citations?.boolean("enabled") === true)
    leftovers.push({ param: citations.path, essential: false });
  return done(block, leftovers, {
    kind: "document",
    media: parseSource(source, leftovers),
    title: block.string("title"),
    param: block.path,
    cache: parseCache(block),
  });
}

function parseSource(source: Fields, leftovers: Leftover[]): Media {
  const type = source.requiredString("type");
  const media = mediaOf(type, source);
  source.rest(leftovers);
  return media;
}

function mediaOf(type: string, source: Fields): Media {
  switch (type) {
    case "base64":
      return {
        kind: "base64",
        mimeType: source.requiredString("media_type"),
        data: source.requiredString("data"),
      };
    case "url": {
      const url = source.requiredString("url");
      return { kind: "url", url, mimeType: mimeTypeOfPath(url) };
    }
    case "text": {
      source.ignore("media_type");
      const data = Buffer.from(source.requiredString("data"), "utf8").toString("base64");
      return { kind: "base64", mimeType: "text/plain", data };
    }
    default:
      throw new BadRequestError(
        `${source.at("type")}: a source of type ${type} exists at Anthropic only`,
        source.at("type"),
        "unsupported_by_upstream",
      );
  }
}

function parseToolUse(block: Fields, leftovers: Leftover[]): Block {
  // The caller of the tool: always the model itself, because server tools are refused.
  block.ignore("caller");
  return done(block, leftovers, {
    kind: "tool_call",
    id: block.requiredString("id"),
    name: block.requiredString("name"),
    arguments: argumentsText(block.raw("input")),
    cache: parseCache(block),
  });
}

function parseToolResult(block: Fields, leftovers: Leftover[]): Block {
  const content = block.has("content") ? parseContent(block, leftovers) : [];
  const results = content.filter(
    (item): item is ResultContent =>
      item.kind === "text" || item.kind === "image" || item.kind === "document",
  );
  if (results.length < content.length)
    block.fail("content", "a list of text, image and document blocks");
  return done(block, leftovers, {
    kind: "tool_result",
    callId: block.requiredString("tool_use_id"),
    content: results,
    isError: block.boolean("is_error") ?? false,
    cache: parseCache(block),
    param: block.at("tool_use_id"),
  });
}
