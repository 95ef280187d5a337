/** The `messages` of a chat completions request into turns. */
import { BadRequestError } from "../dialect.ts";
import { join } from "../fields.ts";
import type { Fields } from "../fields.ts";
import { parseMediaUrl } from "../media.ts";
import type { Block, Leftover, Media, TextBlock, Turn } from "../model.ts";
import { argumentsObject } from "../tool-arguments.ts";
import { parseCache } from "./cache-control.ts";
import { parseReasoningDetails } from "./reasoning-details.ts";

/** Content in other forms: the older form of a call, and audio that OpenAI holds. */
const ESSENTIAL = new Set(["function_call", "audio"]);

const ROLES = ["system", "developer", "user", "assistant", "tool"] as const;

export function parseMessages(fields: Fields, leftovers: Leftover[]): Turn[] {
  if (!fields.has("messages")) fields.fail("messages", "a list");
  return fields.each("messages", (message) => {
    const role = message.oneOf("role", ROLES) ?? message.fail("role", `one of ${ROLES.join(", ")}`);
    const turn = parseMessage(message, role, leftovers);
    message.rest(leftovers, ESSENTIAL);
    return turn;
  });
}

function parseMessage(message: Fields, role: (typeof ROLES)[number], leftovers: Leftover[]): Turn {
  const param = message.path;
  switch (role) {
    case "system":
    case "developer":
      return { role: "system", content: parseTexts(message, leftovers), param };
    case "user":
      return { role: "user", content: parseUserContent(message, leftovers), param };
    case "assistant":
      return { role: "assistant", content: parseAssistant(message, leftovers), param };
    case "tool":
      return { role: "user", content: [parseToolResult(message, leftovers)], param };
  }
}

function parseTexts(message: Fields, leftovers: Leftover[]): TextBlock[] {
  const content = message.raw("content");
  if (content === undefined) return [];
  if (typeof content === "string") return [{ kind: "text", text: content }];
  return message.each("content", (part) => {
    const type = part.requiredString("type");
    if (type !== "text")
      throw new BadRequestError(
        `${part.at("type")} must be "text" in this message`,
        part.at("type"),
      );
    return parseTextPart(part, leftovers);
  });
}

function parseTextPart(part: Fields, leftovers: Leftover[]): TextBlock {
  const block: TextBlock = {
    kind: "text",
    text: part.requiredString("text"),
    cache: parseCache(part),
  };
  part.rest(leftovers);
  return block;
}

function parseUserContent(message: Fields, leftovers: Leftover[]): Block[] {
  const content = message.raw("content");
  if (typeof content === "string") return [{ kind: "text", text: content }];
  if (content === undefined) message.fail("content", "a string or a list of parts");
  return message.each("content", (part) => {
    const type = part.requiredString("type");
    switch (type) {
      case "text":
        return parseTextPart(part, leftovers);
      case "image_url":
        return parseImage(part, leftovers);
      case "file":
        return parseFile(part, leftovers);
      case "input_audio":
        return parseAudio(part, leftovers);
      default:
        throw new BadRequestError(
          `${part.at("type")} must be one of text, image_url, file, input_audio`,
          part.at("type"),
        );
    }
  });
}

function parseImage(part: Fields, leftovers: Leftover[]): Block {
  const image = part.fields("image_url") ?? part.fail("image_url", "a JSON object");
  const detail = image.oneOf("detail", ["auto", "low", "high"]);
  const block: Block = {
    kind: "image",
    media: parseMediaUrl(image.requiredString("url"), image.at("url")),
    detail: detail === "auto" ? undefined : detail,
    cache: parseCache(part),
  };
  image.rest(leftovers);
  part.rest(leftovers);
  return block;
}

function parseFile(part: Fields, leftovers: Leftover[]): Block {
  const file = part.fields("file") ?? part.fail("file", "a JSON object");
  if (file.has("file_id")) {
    throw new BadRequestError(
      `${file.at("file_id")} names a file that only its provider holds: send file_data`,
      file.at("file_id"),
      "unsupported_by_upstream",
    );
  }
  const media: Media = parseMediaUrl(file.requiredString("file_data"), file.at("file_data"));
  const block: Block = {
    kind: "document",
    media,
    title: file.string("filename"),
    cache: parseCache(part),
    param: part.path,
  };
  file.rest(leftovers);
  part.rest(leftovers);
  return block;
}

function parseAudio(part: Fields, leftovers: Leftover[]): Block {
  const audio = part.fields("input_audio") ?? part.fail("input_audio", "a JSON object");
  const format = audio.oneOf("format", ["wav", "mp3"]) ?? audio.fail("format", "wav or mp3");
  const block: Block = {
    kind: "audio",
    mimeType: `audio/${format}`,
    data: audio.requiredString("data"),
    param: part.path,
  };
  parseCache(part);
  audio.rest(leftovers);
  part.rest(leftovers);
  return block;
}

function parseAssistant(message: Fields, leftovers: Leftover[]): Block[] {
  const reasoning = parseReasoningDetails(message, leftovers);
  const blocks: Block[] = [...reasoning.blocks];
  const content = message.raw("content");
  if (typeof content === "string") {
    if (content !== "")
      blocks.push({ kind: "text", text: content, signature: reasoning.textSignature });
  } else if (content !== undefined) {
    blocks.push(
      ...message.each("content", (part): Block => {
        const type = part.requiredString("type");
        if (type === "text") return parseTextPart(part, leftovers);
        if (type !== "refusal")
          throw new BadRequestError(`${part.at("type")} must be text or refusal`, part.at("type"));
        const block: Block = { kind: "refusal", text: part.requiredString("refusal") };
        part.rest(leftovers);
        return block;
      }),
    );
  }
  const refusal = message.string("refusal");
  if (refusal !== undefined) blocks.push({ kind: "refusal", text: refusal });
  blocks.push(
    ...message.each("tool_calls", (call): Block => {
      const type = call.string("type") ?? "function";
      if (type !== "function") {
        throw new BadRequestError(
          `${call.at("type")} must be "function" for this model's provider`,
          call.at("type"),
          "unsupported_by_upstream",
        );
      }
      const id = call.requiredString("id");
      const named = call.fields("function") ?? call.fail("function", "a JSON object");
      const block: Block = {
        kind: "tool_call",
        id,
        name: named.requiredString("name"),
        arguments: parseArguments(named.string("arguments") ?? "", named.at("arguments")),
        signature: reasoning.callSignatures.get(id),
      };
      call.ignore("index");
      named.ignore("parsed_arguments");
      named.rest(leftovers);
      call.rest(leftovers);
      return block;
    }),
  );
  // Additions of the official SDK to an answer, and citations: neither changes the next answer.
  message.ignore("annotations", "parsed");
  return blocks;
}

function parseArguments(text: string, param: string): string {
  if (text.trim() === "") return "{}";
  if (argumentsObject(text) === undefined)
    throw new BadRequestError(`${param} must be a JSON object`, param);
  return text;
}

function parseToolResult(message: Fields, leftovers: Leftover[]): Block {
  const callId = message.requiredString("tool_call_id");
  message.ignore("name");
  return {
    kind: "tool_result",
    callId,
    content: parseTexts(message, leftovers),
    isError: false,
    param: join(message.path, "tool_call_id"),
  };
}
