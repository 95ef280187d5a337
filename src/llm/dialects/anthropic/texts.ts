/** The texts of Anthropic's messages. */
import { isObject, type JsonObject } from "../fields.ts";
import {
  CallNames,
  type ContentText,
  idOf,
  itemsOf,
  partsOf,
  type StreamedText,
  TextCollector,
  textOf,
} from "../texts.ts";

const READ: ReadonlySet<string> = new Set(["system", "messages"]);

export function readTexts(body: Readonly<JsonObject>): readonly ContentText[] {
  const collector = new TextCollector();
  const names = new CallNames();
  const messages = itemsOf(body["messages"]);
  for (const message of messages) {
    if (!isObject(message)) continue;
    for (const block of itemsOf(message["content"])) {
      // `tool_use`, and the vendor's own `server_tool_use` and `mcp_tool_use`.
      if (isObject(block) && isToolUse(block)) names.add(block["id"], block["name"]);
    }
  }
  collector.promptParts(body["system"], "system", "system");
  for (const [index, message] of messages.entries()) {
    const param = `messages[${index}]`;
    if (!isObject(message)) {
      collector.prompt(textOf(message), param, param);
      continue;
    }
    const { role, content, ...rest } = message;
    for (const [block, place] of partsOf(content, `${param}.content`)) {
      readBlock(block, place, idOf(role), names, collector);
    }
    collector.prompt(textOf(rest), param, param);
  }
  collector.rest(body, READ);
  return collector.texts;
}

const isToolUse = ({ type }: JsonObject): boolean =>
  typeof type === "string" && type.endsWith("tool_use");

function readBlock(
  block: unknown,
  param: string,
  role: string,
  names: CallNames,
  collector: TextCollector,
): void {
  if (!isObject(block) || typeof block["type"] !== "string") {
    return collector.prompt(textOf(block), param, role);
  }
  const { type } = block;
  // `tool_result`, and results of the vendor's own tools such as `web_search_tool_result`.
  if (type.endsWith("tool_result")) {
    const id = idOf(block["tool_use_id"]);
    const { content, ...rest } = block;
    const tool = names.get(id);
    collector.toolResultParts(content, `${param}.content`, tool, id || param);
    return collector.toolResult(textOf(rest), param, tool, id || param);
  }
  // What a model thought is no continuation of what it said, and a call is neither.
  collector.prompt(textOf(block), param, type === "text" ? role : `${role}.${param}`);
}

export function readAnswerTexts(body: unknown): readonly ContentText[] {
  const collector = new TextCollector();
  if (!isObject(body)) return [];
  for (const [block, param] of partsOf(body["content"] ?? [], "content")) {
    const isText = isObject(block) && block["type"] === "text";
    collector.response(textOf(block), param, isText ? "text" : param);
  }
  return collector.texts;
}

const DELTA_TEXTS = ["text", "thinking", "partial_json"] as const;

/** @param event the data of one event of a stream */
export function readStreamedTexts(event: unknown): readonly StreamedText[] {
  if (!isObject(event)) return [];
  const source = String(event["index"] ?? 0);
  const delta = event["type"] === "content_block_delta" ? event["delta"] : undefined;
  if (!isObject(delta)) return [];
  return DELTA_TEXTS.flatMap((name) => {
    const text = delta[name];
    return typeof text === "string" ? [{ source, text }] : [];
  });
}
