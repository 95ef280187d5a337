/**
 * The texts of Gemini's contents. Members may be written in camelCase or snake_case, as protobuf's
 * JSON allows.
 */
import { isObject, type JsonObject } from "../fields.ts";
import {
  type ContentText,
  indexOf,
  itemsOf,
  nameOf,
  partsOf,
  type StreamedText,
  TextCollector,
  textOf,
} from "../texts.ts";

const SYSTEM = ["systemInstruction", "system_instruction"] as const;
const READ: ReadonlySet<string> = new Set([...SYSTEM, "contents"]);

export function readTexts(body: Readonly<JsonObject>): readonly ContentText[] {
  const collector = new TextCollector();
  readRequest(body, "", collector);
  return collector.texts;
}

function readRequest(body: Readonly<JsonObject>, path: string, collector: TextCollector): void {
  // countTokens may contain a whole request of generateContent.
  const { generateContentRequest, generate_content_request, ...own } = body;
  for (const [name, inner] of Object.entries({
    generateContentRequest,
    generate_content_request,
  })) {
    const place = `${path}${name}`;
    if (isObject(inner)) readRequest(inner, `${place}.`, collector);
    else collector.prompt(textOf(inner), place, place);
  }
  const calls = calledNames(own["contents"]);
  for (const name of SYSTEM) readContent(own[name], `${path}${name}`, "system", calls, collector);
  for (const [content, place] of partsOf(own["contents"], `${path}contents`)) {
    readContent(content, place, "user", calls, collector);
  }
  collector.rest(own, READ, path);
}

/** Names of the functions that the conversation calls. */
function calledNames(contents: unknown): ReadonlySet<string> {
  const names = new Set<string>();
  for (const [content] of partsOf(contents, "")) {
    for (const part of isObject(content) ? itemsOf(content["parts"]) : []) {
      if (!isObject(part)) continue;
      for (const call of [part["functionCall"], part["function_call"]]) {
        if (isObject(call)) names.add(nameOf(call["name"]));
      }
    }
  }
  return names;
}

function readContent(
  content: unknown,
  param: string,
  defaultRole: string,
  calls: ReadonlySet<string>,
  collector: TextCollector,
): void {
  if (!isObject(content)) return collector.prompt(textOf(content), param, defaultRole);
  const { parts, role, ...rest } = content;
  const source = nameOf(role) || defaultRole;
  for (const [part, place] of partsOf(parts, `${param}.parts`)) {
    readPart(part, place, source, calls, collector);
  }
  collector.prompt(textOf(rest), param, param);
}

function readPart(
  part: unknown,
  param: string,
  role: string,
  calls: ReadonlySet<string>,
  collector: TextCollector,
): void {
  if (!isObject(part)) return collector.prompt(textOf(part), param, role);
  const { functionResponse, function_response, ...rest } = part;
  for (const result of [functionResponse, function_response]) {
    if (result === undefined) continue;
    const { name, ...answer }: JsonObject = isObject(result) ? result : { response: result };
    // A result of a function that was not called has no name that can be believed.
    const isKnown = typeof name === "string" && name !== "" && calls.has(name);
    const tool = isKnown ? name : undefined;
    const block = isKnown ? answer : { name, ...answer };
    collector.toolResult(block, param, { tool, id: param, isPrompt: true });
  }
  // What a model thought is no continuation of what it said, and a call is neither.
  const isText = typeof rest["text"] === "string" && rest["thought"] !== true;
  collector.prompt(textOf(rest), param, isText ? role : `${role}.${param}`);
}

export function readAnswerTexts(body: unknown): readonly ContentText[] {
  const collector = new TextCollector();
  for (const { index, content } of contentsOf(body)) {
    const path = `candidates[${index}].content.parts`;
    for (const [part, param] of partsOf(content["parts"] ?? [], path)) {
      const isText = isObject(part) && typeof part["text"] === "string";
      collector.response(textOf(part), param, isText ? `text.${index}` : param);
    }
  }
  return collector.texts;
}

/** @param event the data of one event of a stream */
export function readStreamedTexts(event: unknown): readonly StreamedText[] {
  return contentsOf(event).flatMap(({ index, content }) =>
    itemsOf(content["parts"]).map((part) => ({
      source: `${kindOf(part)}.${index}`,
      text: textOf(part),
    })),
  );
}

function kindOf(part: unknown): string {
  if (!isObject(part) || typeof part["text"] !== "string") return "part";
  return part["thought"] === true ? "thought" : "text";
}

/** Returns the contents of an answer's candidates. An event of a stream may lack some of them. */
function contentsOf(
  body: unknown,
): readonly { readonly index: number; readonly content: JsonObject }[] {
  const candidates = isObject(body) ? itemsOf(body["candidates"]) : [];
  return candidates.flatMap((candidate, position) =>
    isObject(candidate) && isObject(candidate["content"])
      ? [{ index: indexOf(candidate["index"], position), content: candidate["content"] }]
      : [],
  );
}
