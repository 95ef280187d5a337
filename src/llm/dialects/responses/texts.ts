/** The texts of OpenAI's Responses API. */
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

const READ: ReadonlySet<string> = new Set(["instructions", "input"]);

export function readTexts(body: Readonly<JsonObject>): readonly ContentText[] {
  const collector = new TextCollector();
  const names = new CallNames();
  for (const item of itemsOf(body["input"])) {
    if (isObject(item) && isCall(item)) names.add(item["call_id"], calledName(item));
  }
  collector.promptParts(body["instructions"], "instructions", "system");
  for (const [item, param] of partsOf(body["input"], "input")) {
    if (isObject(item)) readItem(item, param, names, collector);
    else collector.prompt(textOf(item), param, "user");
  }
  collector.rest(body, READ);
  return collector.texts;
}

const typeOf = (item: JsonObject): string => nameOf(item["type"]);
const isCall = (item: JsonObject): boolean => typeOf(item).endsWith("_call");

/** Calls of tools that the vendor defines have no name but their type. */
const calledName = (item: JsonObject): string =>
  idOf(item["name"]) ?? typeOf(item).slice(0, -"_call".length);

function readItem(
  item: JsonObject,
  param: string,
  names: CallNames,
  collector: TextCollector,
): void {
  if (typeOf(item).endsWith("_output")) {
    const { output, ...rest } = item;
    const id = idOf(item["call_id"]);
    const result = { tool: names.get(id), id: id ?? param };
    collector.toolResultParts(output, `${param}.output`, result);
    return collector.toolResult(rest, param, result);
  }
  if (isCall(item)) {
    // A call of a tool that the vendor ran contains its result.
    const { output, outputs, results, error, ...rest } = item;
    collector.prompt(textOf(rest), param, param);
    for (const [name, value] of Object.entries({ output, outputs, results, error })) {
      const result = { tool: calledName(item), id: `${param}.${name}` };
      collector.toolResultParts(value, `${param}.${name}`, result);
    }
    return;
  }
  const { content, ...rest } = item;
  const source = idOf(item["role"]) ?? param;
  collector.promptParts(content, `${param}.content`, source);
  collector.prompt(textOf(rest), param, param);
}

export function readAnswerTexts(body: unknown): readonly ContentText[] {
  const collector = new TextCollector();
  if (!isObject(body)) return [];
  for (const [item, param] of partsOf(body["output"] ?? [], "output")) {
    if (!isObject(item)) continue;
    const { content, ...rest } = item;
    for (const [part, place] of partsOf(content ?? [], `${param}.content`)) {
      collector.response(textOf(part), place, "text");
    }
    collector.response(textOf(rest), param, param);
  }
  return collector.texts;
}

/** @param event the data of one event of a stream */
export function readStreamedTexts(event: unknown): readonly StreamedText[] {
  // Sound has deltas too, in base64.
  if (!isObject(event) || !/(?<!\.audio)\.delta$/.test(typeOf(event))) return [];
  const place = ["output_index", "content_index", "summary_index"].map((name) =>
    indexOf(event[name]),
  );
  return [{ source: `${typeOf(event)}.${place.join(".")}`, text: textOf(event["delta"]) }];
}
