/** The texts of Anthropic's messages. */
import { isObject, type JsonObject } from "../fields.ts";
import {
  CallNames,
  type ContentText,
  idOf,
  indexOf,
  itemsOf,
  nameOf,
  partsOf,
  type StreamedText,
  TextCollector,
  textOf,
} from "../texts.ts";

const READ: ReadonlySet<string> = new Set(["system", "messages"]);

export function readTexts(body: Readonly<JsonObject>): readonly ContentText[] {
  const collector = new TextCollector();
  const names = new CallNames();
  const messages = partsOf(body["messages"], "messages");
  for (const [message] of messages) {
    if (!isObject(message)) continue;
    for (const block of itemsOf(message["content"])) {
      // `tool_use`, and the vendor's own `server_tool_use` and `mcp_tool_use`.
      if (isObject(block) && isToolUse(block)) names.add(block["id"], block["name"]);
    }
  }
  collector.promptParts(body["system"], "system", "system");
  for (const [message, param] of messages) {
    if (!isObject(message)) {
      collector.prompt(textOf(message), param, param);
      continue;
    }
    const { role, content, ...rest } = message;
    for (const [block, place] of partsOf(content, `${param}.content`)) {
      readBlock(block, place, nameOf(role), names, collector);
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
    const result = { tool: names.get(id), id: id ?? param };
    collector.toolResultParts(content, `${param}.content`, result);
    return collector.toolResult(rest, param, result);
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

/** @param event the data of one event of a stream */
export function readStreamedTexts(event: unknown): readonly StreamedText[] {
  if (!isObject(event)) return [];
  const source = indexOf(event["index"]);
  switch (event["type"]) {
    // A tool's name, and the results of the vendor's own tools.
    case "content_block_start":
      return [{ source: `${source}.start`, text: textOf(event["content_block"]) }];
    case "content_block_delta": {
      const { delta } = event;
      const type = isObject(delta) ? nameOf(delta["type"]) : "";
      return [{ source: `${source}.${type}`, text: textOf(delta) }];
    }
    default:
      return [];
  }
}
