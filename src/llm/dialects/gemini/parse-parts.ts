/** Gemini's contents and parts into turns. */
import { BadRequestError } from "../dialect.ts";
import type { Fields } from "../fields.ts";
import { standardBase64 } from "../media.ts";
import type { Block, Leftover, Media, ResultContent, Turn } from "../model.ts";
import { unwrapBase64 } from "../signature.ts";
import { argumentsText } from "../tool-arguments.ts";

/** The part of a video that is meant. */
const ESSENTIAL = new Set(["videoMetadata", "video_metadata"]);

/** Calls without a response yet: Gemini matches them by id, or by name in their order. */
interface OpenCall {
  readonly id: string;
  readonly name: string;
}

export function parseContents(fields: Fields, leftovers: Leftover[]): Turn[] {
  if (!fields.has("contents")) fields.fail("contents", "a list");
  const open: OpenCall[] = [];
  let calls = 0;
  const nextId = (): string => {
    calls += 1;
    return `call_${calls}`;
  };
  return fields.each("contents", (content) => {
    const role = content.oneOf("role", ["user", "model", "function"]) ?? "user";
    const parts = content.each("parts", (part) => {
      const block = parsePart(part, { open, nextId, leftovers });
      part.rest(leftovers, ESSENTIAL);
      return block;
    });
    content.rest(leftovers);
    const turn: Turn = {
      role: role === "model" ? "assistant" : "user",
      content: parts,
      param: content.path,
    };
    return turn;
  });
}

interface Context {
  readonly open: OpenCall[];
  readonly nextId: () => string;
  readonly leftovers: Leftover[];
}

function parsePart(part: Fields, context: Context): Block {
  const encoded = part.string("thoughtSignature");
  const signature = encoded === undefined ? undefined : unwrapBase64(encoded, "gemini").signature;
  const thought = part.boolean("thought") ?? false;
  const text = part.string("text");
  if (text !== undefined) {
    if (!thought) return { kind: "text", text, signature };
    if (text === "" && signature !== undefined) return { kind: "redacted", signature };
    return { kind: "thinking", vendor: signature?.vendor, text, signature };
  }
  const call = part.fields("functionCall");
  if (call !== undefined) {
    const block: Block = {
      kind: "tool_call",
      id: call.string("id") ?? context.nextId(),
      name: call.requiredString("name"),
      arguments: argumentsText(call.raw("args")),
      signature,
    };
    context.open.push({ id: block.id, name: block.name });
    call.rest(context.leftovers);
    return block;
  }
  const response = part.fields("functionResponse");
  if (response !== undefined) return parseFunctionResponse(response, context);
  const media = parseMedia(part, context.leftovers);
  if (media === undefined) {
    throw new BadRequestError(
      `${part.path} has no equivalent at this model's provider`,
      part.path,
      "unsupported_by_upstream",
    );
  }
  return mediaBlock(media, part.path);
}

function parseMedia(part: Fields, leftovers: Leftover[]): Media | undefined {
  const inline = part.fields("inlineData");
  if (inline !== undefined) {
    const media: Media = {
      kind: "base64",
      mimeType: inline.requiredString("mimeType"),
      data: standardBase64(inline.requiredString("data")),
    };
    inline.ignore("displayName");
    inline.rest(leftovers);
    return media;
  }
  const file = part.fields("fileData");
  if (file === undefined) return undefined;
  const url = file.requiredString("fileUri");
  if (!/^https?:/i.test(url) || url.startsWith("https://generativelanguage.googleapis.com/")) {
    throw new BadRequestError(
      `${file.at("fileUri")} names a file that only its provider holds`,
      file.at("fileUri"),
      "unsupported_by_upstream",
    );
  }
  const media: Media = { kind: "url", url, mimeType: file.string("mimeType") };
  file.ignore("displayName");
  file.rest(leftovers);
  return media;
}

function mediaBlock(media: Media, param: string): Block {
  const type = media.mimeType ?? "image/*";
  if (type.startsWith("image/")) return { kind: "image", media };
  if (type === "application/pdf" || type.startsWith("text/"))
    return { kind: "document", media, param };
  if (
    media.kind === "base64" &&
    (type === "audio/wav" || type === "audio/mp3" || type === "audio/mpeg")
  ) {
    return {
      kind: "audio",
      mimeType: type === "audio/wav" ? type : "audio/mp3",
      data: media.data,
      param,
    };
  }
  throw new BadRequestError(
    `${param}: media of type ${type} has no equivalent at this model's provider`,
    param,
    "unsupported_by_upstream",
  );
}

function parseFunctionResponse(response: Fields, { open, leftovers }: Context): Block {
  const name = response.requiredString("name");
  const id = response.string("id");
  const index = open.findIndex((call) => (id === undefined ? call.name === name : call.id === id));
  const call = open[index];
  if (call === undefined)
    throw new BadRequestError(`${response.path} answers no earlier call of ${name}`, response.path);
  open.splice(index, 1);
  const value = response.object("response") ?? {};
  const keys = Object.keys(value);
  const only = keys.length === 1 ? keys[0] : undefined;
  const isError = only === "error";
  const inner = only === "error" || only === "output" || only === "result" ? value[only] : value;
  const content: ResultContent[] = [
    { kind: "text", text: typeof inner === "string" ? inner : JSON.stringify(inner) },
  ];
  response.each("parts", (part) => {
    const media = parseMedia(part, leftovers);
    const block = media === undefined ? undefined : mediaBlock(media, part.path);
    if (block?.kind !== "image" && block?.kind !== "document")
      part.fail("inlineData", "an image or a document");
    else content.push(block);
    part.rest(leftovers);
  });
  response.rest(leftovers);
  return { kind: "tool_result", callId: call.id, content, isError, param: response.path };
}
