/** The texts of OpenAI's Responses API. */
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

const READ: ReadonlySet<string> = new Set(["instructions", "input"]);

export function readTexts(body: Readonly<JsonObject>): readonly ContentText[] {
  const collector = new TextCollector();
  const names = new CallNames();
  for (const item of itemsOf(body["input"])) {
    if (isObject(item)) names.add(item["call_id"], calledName(item));
  }
  collector.promptParts(body["instructions"], "instructions", "system");
  for (const [item, param] of partsOf(body["input"], "input")) {
    if (isObject(item)) readItem(item, param, names, collector);
    else collector.prompt(textOf(item), param, "user");
  }
  collector.rest(body, READ);
  return collector.texts;
}

const typeOf = (item: JsonObject): string => idOf(item["type"]);

/** Calls of tools that the vendor defines have no name but their type. */
function calledName(item: JsonObject): string | undefined {
  if (!typeOf(item).endsWith("_call")) return undefined;
  return idOf(item["name"]) || typeOf(item).slice(0, -"_call".length);
}

function readItem(
  item: JsonObject,
  param: string,
  names: CallNames,
  collector: TextCollector,
): void {
  if (typeOf(item).endsWith("_output")) {
    const { output, ...rest } = item;
    const id = idOf(item["call_id"]);
    const tool = names.get(id);
    collector.toolResultParts(output, `${param}.output`, tool, id || param);
    return collector.toolResult(textOf(rest), param, tool, id || param);
  }
  if (typeOf(item).endsWith("_call")) {
    // A call of a tool that the vendor ran contains its result.
    const { output, ...rest } = item;
    const tool = calledName(item);
    collector.prompt(textOf(rest), param, param);
    return collector.toolResultParts(output, `${param}.output`, tool, param);
  }
  const { content, ...rest } = item;
  const source = idOf(item["role"]) || param;
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
    collector.response(textOf({ ...rest, status: undefined }), param, param);
  }
  return collector.texts;
}

/** @param event the data of one event of a stream */
export function readStreamedTexts(event: unknown): readonly StreamedText[] {
  if (!isObject(event) || !typeOf(event).endsWith(".delta")) return [];
  const place = ["output_index", "content_index", "summary_index"].map((name) =>
    String(event[name] ?? ""),
  );
  return [{ source: `${typeOf(event)}.${place.join(".")}`, text: textOf(event["delta"]) }];
}
