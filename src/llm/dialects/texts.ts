/**
 * Reads the texts of a request or an answer, for the guard. The readers are lenient and complete: a
 * block of unknown type, or a member that the dialect does not define, may still reach a model, so
 * every string of it counts as text. The dialects only say which parts are results of tools.
 */
import { isObject, join, type JsonObject } from "./fields.ts";

/** A text that a model reads, or has written. */
export interface ContentText {
  readonly kind: "prompt" | "tool_result" | "response";
  readonly text: string;
  /** Tool whose result it is; undefined for other kinds, or if it cannot be told. */
  readonly tool: string | undefined;
  /** Place in the body, e.g. `messages[2].content[0]`. */
  readonly param: string;
  /**
   * Adjacent texts with the same source are one text for a model: parts of a message, and messages
   * of the same role in a row.
   */
  readonly source: string;
}

/** Part of a streamed answer. Parts with the same source belong together, in their order. */
export interface StreamedText {
  readonly source: string;
  readonly text: string;
}

/** Members whose values are not text in any block: types, ids, settings and what vendors seal. */
const NOT_TEXT: ReadonlySet<string> = new Set([
  "type",
  "role",
  "id",
  "tool_use_id",
  "tool_call_id",
  "call_id",
  "cache_control",
  "mime_type",
  "mimeType",
  "media_type",
  "signature",
  "thoughtSignature",
  "thought_signature",
  "encrypted_content",
]);

/** Media that a model does not read as text. A vendor refuses text under these types. */
const MEDIA = /^(?:image|audio|video)\/|^application\/pdf$/i;
const AUDIO_FORMAT = /^(?:wav|mp3|flac|opus|aac|pcm16|ogg)$/;
const MEDIA_URL = /^data:(?:(?:image|audio|video)\/|application\/pdf)/i;

/** Members that contain any JSON: the names of its members are text too. */
const FREE_JSON: ReadonlySet<string> = new Set([
  "args",
  "arguments",
  "input",
  "input_schema",
  "json_schema",
  "parameters",
  "parametersJsonSchema",
  "response",
  "responseSchema",
  "schema",
  "variables",
]);

/** Members of a request that no model reads. */
const NOT_READ: ReadonlySet<string> = new Set([
  "model",
  "metadata",
  "user",
  "labels",
  "safety_identifier",
  "prompt_cache_key",
]);

/** Values of settings, such as `auto`. */
const SETTING = /^[\w.:/-]{0,64}$/;

/** Returns all text of a block, its strings separated by newlines. */
export function textOf(block: unknown): string {
  if (typeof block === "string") return block;
  const found: string[] = [];
  collect(block, false, found);
  return found.join("\n");
}

/** Returns all text of a value that may be any JSON, with the names of its members. */
export function textOfJson(value: unknown): string {
  const found: string[] = [];
  collect(value, true, found);
  return found.join("\n");
}

function collect(value: unknown, free: boolean, found: string[]): void {
  if (typeof value === "string") {
    if (!MEDIA_URL.test(value)) found.push(value);
  } else if (Array.isArray(value)) {
    for (const item of value) collect(item, free, found);
  } else if (isObject(value)) {
    for (const [name, member] of Object.entries(value)) {
      if (!free && (NOT_TEXT.has(name) || isMedia(value, name))) continue;
      if (free) found.push(name);
      collect(member, free || FREE_JSON.has(name), found);
    }
  }
}

/** Returns whether a member is the data of an image, a sound, a video or a PDF. */
function isMedia(block: JsonObject, member: string): boolean {
  if (member === "result") return block["type"] === "image_generation_call";
  if (member !== "data") return false;
  const mimeType = block["media_type"] ?? block["mimeType"] ?? block["mime_type"];
  return (
    (typeof mimeType === "string" && MEDIA.test(mimeType)) ||
    // OpenAI's input_audio, and what Anthropic sealed.
    (typeof block["format"] === "string" && AUDIO_FORMAT.test(block["format"])) ||
    block["type"] === "redacted_thinking"
  );
}

/** TextCollector collects the texts of one body. */
export class TextCollector {
  readonly texts: ContentText[] = [];

  /** Adds a text of the caller or of the model; an empty one is left out. */
  prompt(text: string, param: string, source: string): void {
    this.#add({ kind: "prompt", text, tool: undefined, param, source });
  }

  /** @param tool name of the tool; undefined if it is not known */
  toolResult(text: string, param: string, tool: string | undefined, id: string): void {
    this.#add({ kind: "tool_result", text, tool, param, source: `tool:${id}` });
  }

  response(text: string, param: string, source: string): void {
    this.#add({ kind: "response", text, tool: undefined, param, source });
  }

  /** Adds each item of a list, or the value itself if it is none. */
  promptParts(content: unknown, param: string, source: string): void {
    for (const [part, place] of partsOf(content, param)) this.prompt(textOf(part), place, source);
  }

  /** Adds each item of a list, or the value itself, as the result of a tool. */
  toolResultParts(content: unknown, param: string, tool: string | undefined, id: string): void {
    for (const [part, place] of partsOf(content, param)) {
      this.toolResult(textOf(part), place, tool, id);
    }
  }

  /**
   * Adds the other members of a request: definitions of tools, and everything that the dialect does
   * not define.
   */
  rest(body: Readonly<JsonObject>, read: ReadonlySet<string>): void {
    for (const [name, value] of Object.entries(body)) {
      if (read.has(name) || NOT_READ.has(name)) continue;
      for (const [part, place] of partsOf(value, name)) {
        const found: string[] = [];
        collect(part, false, found);
        if (found.every((text) => SETTING.test(text))) continue;
        this.prompt(found.join("\n"), place, place);
      }
    }
  }

  #add(text: ContentText): void {
    if (text.text !== "") this.texts.push(text);
  }
}

/** Returns the items of a list with their places, or the value itself with its own. */
export function partsOf(value: unknown, param: string): readonly (readonly [unknown, string])[] {
  return Array.isArray(value)
    ? value.map((item: unknown, index) => [item, join(param, index)] as const)
    : [[value, param]];
}

/** Returns the items of a list; none if it is no list. */
export function itemsOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/**
 * CallNames resolves the id of a call to the name of the called tool. An id that stands for calls
 * of several tools resolves to none: nobody may choose the name under which a result is judged.
 */
export class CallNames {
  readonly #names = new Map<string, string | undefined>();

  add(id: unknown, name: unknown): void {
    if (typeof id !== "string" || typeof name !== "string") return;
    const known = this.#names.has(id) && this.#names.get(id) !== name;
    this.#names.set(id, known ? undefined : name);
  }

  get(id: unknown): string | undefined {
    return typeof id === "string" ? this.#names.get(id) : undefined;
  }
}

/** Returns a member if it is a text, and else a text that names nothing. */
export function idOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
