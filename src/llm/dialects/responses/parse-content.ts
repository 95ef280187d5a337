/** The parts of messages and of tool results. */
import { BadRequestError } from "../dialect.ts";
import type { Fields } from "../fields.ts";
import { mimeTypeOfPath, parseMediaUrl } from "../media.ts";
import type {
  AudioBlock,
  Block,
  DocumentBlock,
  ImageBlock,
  Leftover,
  Media,
  RefusalBlock,
  ResultContent,
  TextBlock,
} from "../model.ts";
import { parseCache } from "../openai/cache-control.ts";

type Part = TextBlock | ImageBlock | DocumentBlock | AudioBlock | RefusalBlock;

/** `content` of a message: a string, or parts. */
export function parseContent(message: Fields, leftovers: Leftover[]): Part[] {
  return parseParts(message, "content", leftovers);
}

/** `output` of a tool: a string, or parts that a tool can return. */
export function parseOutput(item: Fields, leftovers: Leftover[]): ResultContent[] {
  const parts = parseParts(item, "output", leftovers);
  const isResult = (part: Part): part is ResultContent =>
    part.kind === "text" || part.kind === "image" || part.kind === "document";
  if (!parts.every(isResult)) item.fail("output", "a list of texts, images and files");
  return parts.filter(isResult);
}

/** Keeps the texts of parts, for system messages. */
export function onlyTexts(content: readonly Block[], message: Fields): TextBlock[] {
  const texts = content.filter((block) => block.kind === "text");
  if (texts.length < content.length) message.fail("content", "text, in this message");
  return texts;
}

function parseParts(owner: Fields, key: string, leftovers: Leftover[]): Part[] {
  const content = owner.raw(key);
  if (typeof content === "string") return content === "" ? [] : [{ kind: "text", text: content }];
  if (content === undefined) owner.fail(key, "a string or a list of parts");
  return owner.each(key, (part) => parsePart(part, leftovers));
}

function parsePart(part: Fields, leftovers: Leftover[]): Part {
  const type = part.requiredString("type");
  switch (type) {
    case "input_text":
      return done(part, leftovers, {
        kind: "text",
        text: part.requiredString("text"),
        cache: parseCache(part),
      });
    case "output_text":
      // The rest of an answer's text (citations, probabilities) does not change the next answer.
      return { kind: "text", text: part.requiredString("text") };
    case "refusal":
      return { kind: "refusal", text: part.requiredString("refusal") };
    case "input_image":
      return done(part, leftovers, parseImage(part));
    case "input_file":
      return done(part, leftovers, parseFile(part));
    case "input_audio":
      return done(part, leftovers, parseAudio(part));
    default:
      throw new BadRequestError(
        `${part.at("type")} must be one of input_text, input_image, input_file, input_audio, ` +
          "output_text, refusal",
        part.at("type"),
      );
  }
}

function done<T extends Part>(part: Fields, leftovers: Leftover[], block: T): T {
  part.rest(leftovers);
  return block;
}

function parseImage(part: Fields): ImageBlock {
  refuseStored(part);
  const detail = part.oneOf("detail", ["auto", "low", "high", "original"]);
  return {
    kind: "image",
    media: parseMediaUrl(part.requiredString("image_url"), part.at("image_url")),
    detail: detail === "low" || detail === "high" ? detail : undefined,
    cache: parseCache(part),
  };
}

function parseFile(part: Fields): DocumentBlock {
  refuseStored(part);
  const title = part.string("filename");
  part.ignore("detail");
  return {
    kind: "document",
    media: fileMedia(part, title),
    title,
    param: part.path,
    cache: parseCache(part),
  };
}

/** `file_data` is a data URL, or base64 whose type the file's name tells. */
function fileMedia(part: Fields, filename: string | undefined): Media {
  const url = part.string("file_url");
  if (url !== undefined) return parseMediaUrl(url, part.at("file_url"));
  const data = part.requiredString("file_data");
  if (/^data:/i.test(data)) return parseMediaUrl(data, part.at("file_data"));
  const mimeType = mimeTypeOfPath(filename ?? "") ?? "application/pdf";
  return { kind: "base64", mimeType, data };
}

function refuseStored(part: Fields): void {
  if (!part.has("file_id")) return;
  throw new BadRequestError(
    `${part.at("file_id")} names a file that only its provider holds: send its content instead`,
    part.at("file_id"),
    "unsupported_by_upstream",
  );
}

function parseAudio(part: Fields): AudioBlock {
  const audio = part.fields("input_audio") ?? part.fail("input_audio", "a JSON object");
  const format = audio.oneOf("format", ["wav", "mp3"]) ?? audio.fail("format", "wav or mp3");
  return {
    kind: "audio",
    mimeType: `audio/${format}`,
    data: audio.requiredString("data"),
    param: part.path,
  };
}
