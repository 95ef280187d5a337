/**
 * Removes another vendor's reasoning from a conversation that goes back to its own dialect, for
 * example after a fallback: vendors refuse signatures that they did not create.
 */
import type { DialectName } from "./dialect.ts";
import { isObject } from "./fields.ts";
import type { JsonObject } from "./fields.ts";
import { JsonBody } from "../json-body.ts";
import { FOREIGN_MARK, FOREIGN_MARK_BASE64 } from "./signature.ts";

/**
 * Byte marks without which a body contains nothing foreign: one search suffices for almost every
 * request.
 */
const MARKS: Readonly<Record<DialectName, Buffer>> = {
  openai: Buffer.from('"reasoning_details"'),
  anthropic: Buffer.from(`"${FOREIGN_MARK}`),
  gemini: Buffer.from(`"${FOREIGN_MARK_BASE64}`),
};

/** Returns `body` itself if there is nothing to remove. */
export function stripForeign(dialect: DialectName, body: JsonBody): JsonBody {
  if (!body.raw.includes(MARKS[dialect])) return body;
  const listKey = dialect === "gemini" ? "contents" : "messages";
  const list = body.value[listKey];
  if (!Array.isArray(list)) return body;
  const cleaned = list.map((item: unknown) => (isObject(item) ? STRIPPERS[dialect](item) : item));
  if (cleaned.every((item, index) => item === list[index])) return body;
  const kept = { ...body.value, [listKey]: cleaned.filter((item) => item !== undefined) };
  return JsonBody.read(Buffer.from(JSON.stringify(kept), "utf8"));
}

type Stripper = (message: JsonObject) => JsonObject | undefined;

const STRIPPERS: Readonly<Record<DialectName, Stripper>> = {
  openai: (message) => {
    const details = message["reasoning_details"];
    if (!Array.isArray(details)) return message;
    const own = details.filter(
      (detail: unknown) => !isObject(detail) || !isForeignFormat(detail["format"]),
    );
    if (own.length === details.length) return message;
    const { reasoning_details: _, reasoning_content: __, ...rest } = message;
    return own.length === 0 ? rest : { ...rest, reasoning_details: own };
  },
  anthropic: (message) =>
    withoutItems(
      message,
      "content",
      (block) =>
        isForeign(block["signature"], FOREIGN_MARK) || isForeign(block["data"], FOREIGN_MARK),
    ),
  gemini: (message) =>
    withoutItems(message, "parts", (part) =>
      isForeign(part["thoughtSignature"] ?? part["thought_signature"], FOREIGN_MARK_BASE64),
    ),
};

function isForeignFormat(format: unknown): boolean {
  return format === "anthropic-claude-v1" || format === "google-gemini-v1";
}

function isForeign(value: unknown, mark: string): boolean {
  return typeof value === "string" && value.startsWith(mark);
}

/** A message with no other content is removed completely: no vendor accepts one without content. */
function withoutItems(
  message: JsonObject,
  key: string,
  foreign: (item: JsonObject) => boolean,
): JsonObject | undefined {
  const items = message[key];
  if (!Array.isArray(items)) return message;
  const own = items.filter((item: unknown) => !isObject(item) || !foreign(item));
  if (own.length === items.length) return message;
  return own.length === 0 ? undefined : { ...message, [key]: own };
}
