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
  /** Whether it is part of the prompt too, as Gemini's results of functions are. */
  readonly isPrompt: boolean;
  /**
   * Adjacent texts with the same source are one text for a model: parts of a message, and messages
   * of the same role in a row. A source `<other>.<anything>` in between does not separate them.
   */
  readonly source: string;
}

/** Part of a streamed answer. Parts with the same source belong together, in their order. */
export interface StreamedText {
  readonly source: string;
  readonly text: string;
}

/** Members that identify or set something. Their values are text if they do not look like it. */
const LABELS: ReadonlySet<string> = new Set([
  "type",
  "role",
  "id",
  "status",
  "ttl",
  "detail",
  "format",
  "file_id",
  "tool_use_id",
  "tool_call_id",
  "call_id",
  "mime_type",
  "mimeType",
  "media_type",
]);

/** An identifier, or a value of a setting such as `auto`. */
const LABEL = /^[\w.:/-]{0,64}$/;

/** Members that vendors seal: no model reads them as they are. */
const SEALED: ReadonlySet<string> = new Set([
  "signature",
  "thoughtSignature",
  "thought_signature",
  "encrypted_content",
  "encrypted_index",
]);

/** Media that a model does not read as text. A vendor refuses text under these types. */
const MEDIA = /^(?:image|audio|video)\/|^application\/pdf$/i;
const AUDIO_FORMAT = /^(?:wav|mp3|flac|opus|aac|pcm16|ogg)$/;

/** Members whose values may be `data:` URLs of media. */
const URLS: ReadonlySet<string> = new Set(["url", "image_url", "file_data"]);
const MEDIA_URL = /^data:(?:(?:image|audio|video)\/|application\/pdf)[\w.+;=-]{0,80};base64,/i;

/** Base64 in either alphabet, also wrapped in lines. Whatever else is there is text. */
const BASE64 = /^[\w+/=\r\n-]*$/;

/** Members that contain any JSON: the names of its members are text too. */
const FREE_JSON: ReadonlySet<string> = new Set([
  "args",
  "arguments",
  "input",
  "input_schema",
  "json_schema",
  "parameters",
  "parametersJsonSchema",
  "parameters_json_schema",
  "response",
  "responseJsonSchema",
  "response_json_schema",
  "responseSchema",
  "response_schema",
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

/** Returns all text of a block, its strings separated by newlines. */
export function textOf(block: unknown): string {
  return typeof block === "string" ? block : stringsOf(block).join("\n");
}

/** Returns all strings of a block that are text. Its depth is not bounded: no recursion. */
function stringsOf(block: unknown): string[] {
  const found: string[] = [];
  const rest: { readonly value: unknown; readonly isFree: boolean }[] = [
    { value: block, isFree: false },
  ];
  for (let next = rest.pop(); next !== undefined; next = rest.pop()) {
    const { value, isFree } = next;
    if (typeof value === "string") {
      found.push(value);
    } else if (Array.isArray(value)) {
      for (const item of value.toReversed()) rest.push({ value: item, isFree });
    } else if (isObject(value)) {
      for (const [name, member] of Object.entries(value).toReversed()) {
        if (!isFree && isNoText(value, name, member)) continue;
        rest.push({ value: member, isFree: isFree || FREE_JSON.has(name) });
        if (isFree) rest.push({ value: name, isFree });
      }
    }
  }
  return found;
}

function isNoText(block: JsonObject, name: string, value: unknown): boolean {
  if (isCredential(block, name)) return true;
  if (typeof value !== "string") return false;
  if (LABELS.has(name)) return LABEL.test(value);
  if (URLS.has(name)) return isMediaUrl(value);
  return (SEALED.has(name) || isMedia(block, name)) && BASE64.test(value);
}

/** Returns whether a member is a credential for an MCP server, which its vendor does not show. */
function isCredential({ type }: JsonObject, name: string): boolean {
  return (
    name === "authorization_token" ||
    (type === "mcp" && (name === "authorization" || name === "headers"))
  );
}

function isMediaUrl(value: string): boolean {
  const prefix = MEDIA_URL.exec(value)?.[0];
  return prefix !== undefined && BASE64.test(value.slice(prefix.length));
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

/** Whose result a text is. */
export interface ToolResult {
  /** Name of the tool; undefined if it is not known. */
  readonly tool: string | undefined;
  /** Id of the call, or the place of the result. */
  readonly id: string;
  /** False by default. */
  readonly isPrompt?: boolean;
}

/** TextCollector collects the texts of one body. */
export class TextCollector {
  readonly texts: ContentText[] = [];

  /** Adds a text of the caller or of the model; an empty one is left out. */
  prompt(text: string, param: string, source: string): void {
    this.#add({ kind: "prompt", text, tool: undefined, param, isPrompt: true, source });
  }

  /** Adds the result of a tool: a block, or its text. */
  toolResult(block: unknown, param: string, { tool, id, isPrompt = false }: ToolResult): void {
    const text = textOf(block);
    this.#add({ kind: "tool_result", text, tool, param, isPrompt, source: `tool:${id}` });
  }

  response(text: string, param: string, source: string): void {
    this.#add({ kind: "response", text, tool: undefined, param, isPrompt: false, source });
  }

  /** Adds each item of a list, or the value itself if it is none. */
  promptParts(content: unknown, param: string, source: string): void {
    for (const [part, place] of partsOf(content, param)) this.prompt(textOf(part), place, source);
  }

  /** Adds each item of a list, or the value itself, as the result of a tool. */
  toolResultParts(content: unknown, param: string, result: ToolResult): void {
    for (const [part, place] of partsOf(content, param)) this.toolResult(part, place, result);
  }

  /**
   * Adds the other members of a request: definitions of tools, and everything that the dialect does
   * not define. A member that looks like a setting is left out.
   *
   * @param path of the body, with a dot at its end
   */
  rest(body: Readonly<JsonObject>, read: ReadonlySet<string>, path = ""): void {
    for (const [name, value] of Object.entries(body)) {
      if (read.has(name) || NOT_READ.has(name)) continue;
      if (LABEL.test(stringsOf(value).join("-"))) continue;
      for (const [part, place] of partsOf(value, `${path}${name}`)) {
        this.prompt(textOf(part), place, place);
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
    if (typeof id !== "string") return;
    const isOther = this.#names.has(id) && this.#names.get(id) !== name;
    this.#names.set(id, isOther || typeof name !== "string" ? undefined : name);
  }

  get(id: string | undefined): string | undefined {
    return id === undefined ? undefined : this.#names.get(id);
  }
}

/** Returns a member if it is a text, and else one that names nothing. */
export function nameOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** Returns an id; undefined if it is none. */
export function idOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** Returns the index of a part of an answer, of which a stream has several; `otherwise` if none. */
export function indexOf(value: unknown, otherwise = 0): number {
  return typeof value === "number" ? value : otherwise;
}
