/** The texts of chat completions. */
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

const READ: ReadonlySet<string> = new Set(["messages"]);

export function readTexts(body: Readonly<JsonObject>): readonly ContentText[] {
  const collector = new TextCollector();
  const messages = partsOf(body["messages"], "messages");
  const calls = new Calls(messages.map(([message]) => message));
  for (const [message, param] of messages) {
    if (isObject(message)) readMessage(message, param, calls, collector);
    else collector.prompt(textOf(message), param, param);
  }
  collector.rest(body, READ);
  return collector.texts;
}

/** Calls are the tools that a conversation calls. */
class Calls {
  /** By id of the call. */
  readonly names = new CallNames();
  /** Functions called in the older way, without an id. */
  readonly functions = new Set<string>();

  constructor(messages: readonly unknown[]) {
    for (const message of messages) {
      if (!isObject(message)) continue;
      if (isObject(message["function_call"])) {
        this.functions.add(nameOf(message["function_call"]["name"]));
      }
      for (const call of itemsOf(message["tool_calls"])) {
        if (!isObject(call)) continue;
        for (const called of [call["function"], call["custom"]]) {
          if (isObject(called)) this.names.add(call["id"], called["name"]);
        }
      }
    }
  }

  /** Returns the tool whose result a message is. */
  toolOf({ role, name, tool_call_id }: JsonObject): string | undefined {
    if (role === "tool") return this.names.get(idOf(tool_call_id));
    const own = nameOf(name);
    return own !== "" && this.functions.has(own) ? own : undefined;
  }
}

/** A name of a tool or a function as vendors demand it. */
const NAME = /^[\w-]{1,64}$/;

function readMessage(
  message: JsonObject,
  param: string,
  calls: Calls,
  collector: TextCollector,
): void {
  const { role, content, ...rest } = message;
  if (role === "tool" || role === "function") {
    const result = { tool: calls.toolOf(message), id: idOf(message["tool_call_id"]) ?? param };
    collector.toolResultParts(content, `${param}.content`, result);
    const { name } = rest;
    const isName = typeof name === "string" && NAME.test(name);
    collector.toolResult(isName ? { ...rest, name: undefined } : rest, param, result);
    return;
  }
  const source = nameOf(role);
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
    const choiceIndex = indexOf(choice["index"]);
    for (const [name, value] of Object.entries(choice["delta"])) {
      if (name === "role") continue;
      if (name !== "tool_calls") {
        texts.push({ source: `${choiceIndex}.${name}`, text: textOf(value) });
        continue;
      }
      for (const call of itemsOf(value)) {
        if (!isObject(call)) continue;
        const source = `${choiceIndex}.call.${indexOf(call["index"])}`;
        const called = call["function"] ?? call["custom"];
        if (!isObject(called)) continue;
        for (const member of ["name", "arguments", "input"]) {
          texts.push({ source: `${source}.${member}`, text: nameOf(called[member]) });
        }
      }
    }
  }
  return texts;
}
