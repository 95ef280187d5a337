/** The texts of chat completions. */
import { isObject, type JsonObject } from "../fields.ts";
import {
  CallNames,
  type ContentText,
  idOf,
  itemsOf,
  type StreamedText,
  TextCollector,
  textOf,
} from "../texts.ts";

const READ: ReadonlySet<string> = new Set(["messages"]);

export function readTexts(body: Readonly<JsonObject>): readonly ContentText[] {
  const collector = new TextCollector();
  const names = new CallNames();
  const messages = itemsOf(body["messages"]);
  for (const message of messages) {
    if (!isObject(message)) continue;
    for (const call of itemsOf(message["tool_calls"])) {
      if (isObject(call)) names.add(call["id"], nameOf(call));
    }
  }
  for (const [index, message] of messages.entries()) {
    const param = `messages[${index}]`;
    if (isObject(message)) readMessage(message, param, names, collector);
    else collector.prompt(textOf(message), param, param);
  }
  collector.rest(body, READ);
  return collector.texts;
}

function nameOf(call: JsonObject): unknown {
  const called = call["function"] ?? call["custom"];
  return isObject(called) ? called["name"] : undefined;
}

function readMessage(
  message: JsonObject,
  param: string,
  names: CallNames,
  collector: TextCollector,
): void {
  const { role, content, ...rest } = message;
  if (role === "tool" || role === "function") {
    const id = idOf(message["tool_call_id"]);
    // The older `function` role names the function itself.
    const tool = role === "function" ? idOf(message["name"]) || undefined : names.get(id);
    collector.toolResultParts(content, `${param}.content`, tool, id || param);
    collector.toolResult(textOf({ ...rest, name: undefined }), param, tool, id || param);
    return;
  }
  const source = idOf(role);
  collector.promptParts(content, `${param}.content`, source);
  for (const [name, value] of Object.entries(rest)) {
    collector.promptParts(value, `${param}.${name}`, `${source}.${name}`);
  }
}

export function readAnswerTexts(body: unknown): readonly ContentText[] {
  const collector = new TextCollector();
  if (!isObject(body)) return [];
  for (const [index, choice] of itemsOf(body["choices"]).entries()) {
    const message = isObject(choice) ? choice["message"] : undefined;
    if (!isObject(message)) continue;
    for (const [name, value] of Object.entries(message)) {
      if (name === "role") continue;
      const place = `choices[${index}].message.${name}`;
      collector.response(textOf(value), place, place);
    }
  }
  return collector.texts;
}

/** @param event the data of one event of a stream */
export function readStreamedTexts(event: unknown): readonly StreamedText[] {
  if (!isObject(event)) return [];
  const texts: StreamedText[] = [];
  for (const choice of itemsOf(event["choices"])) {
    if (!isObject(choice) || !isObject(choice["delta"])) continue;
    const choiceIndex = String(choice["index"] ?? 0);
    for (const [name, value] of Object.entries(choice["delta"])) {
      if (name === "role") continue;
      if (name !== "tool_calls") {
        texts.push({ source: `${choiceIndex}.${name}`, text: textOf(value) });
        continue;
      }
      for (const call of itemsOf(value)) {
        if (!isObject(call)) continue;
        const source = `${choiceIndex}.call.${String(call["index"] ?? 0)}`;
        const called = call["function"] ?? call["custom"];
        if (isObject(called))
          texts.push({ source, text: idOf(called["arguments"] ?? called["input"]) });
      }
    }
  }
  return texts;
}
