/**
 * Tools of the Responses API. Only functions have an equivalent everywhere:
 *
 * - a custom tool, whose input is free text, becomes a function with one string, `input`;
 * - the tools of a namespace become functions whose names begin with the namespace;
 * - shells and patches, which OpenAI defines, become functions: see `defined-tools.ts`;
 * - searches and images that OpenAI offers in every conversation (Codex always sends `web_search`)
 *   are dropped; other tools that only OpenAI runs are refused.
 */
import { createHash } from "node:crypto";
import { type Fields, isObject, type JsonObject } from "../fields.ts";
import { unsupported } from "../changes.ts";
import type { EchoedTool, Leftover, Tool, ToolChoice } from "../model.ts";
import { argumentsObject } from "../tool-arguments.ts";
import { definedTool, isDefinedTool, isHosted } from "./defined-tools.ts";

/** A conversation keeps its meaning without these: the model answers from what it knows. */
const OPTIONAL = /^(web_search|image_generation|tool_search)/;

/** The longest name of a function at OpenAI. */
const LONGEST_NAME = 64;

/** The only argument of the function that stands for a custom tool. */
const INPUT = "input";

export function parseTools(fields: Fields, leftovers: Leftover[]): Tool[] {
  return fields.each("tools", (tool) => parseTool(tool, leftovers)).flat();
}

function parseTool(tool: Fields, leftovers: Leftover[]): Tool[] {
  const type = tool.requiredString("type");
  switch (type) {
    case "function":
    case "custom":
      return [parseCallable(tool, type, undefined)];
    case "namespace":
      return parseNamespace(tool);
    default:
      if (isDefinedTool(type) && !isHosted(tool)) return [definedTool(type)];
      if (!OPTIONAL.test(type))
        throw unsupported(tool.path, `is the tool ${type}, which only OpenAI has`);
      leftovers.push({ param: tool.path, essential: false });
      return [];
  }
}

function parseNamespace(namespace: Fields): Tool[] {
  const name = namespace.requiredString("name");
  const description = namespace.string("description");
  const tools = namespace.each("tools", (tool) => {
    const type = tool.oneOf("type", ["function", "custom"]) ?? "function";
    return parseCallable(tool, type, name);
  });
  // The description of the namespace is given once.
  const [first, ...others] = tools;
  if (first === undefined || description === undefined) return tools;
  return [{ ...first, description: joined(description, first.description) }, ...others];
}

/**
 * The members of a tool that are not read (`defer_loading`, `allowed_callers`, `output_schema`)
 * concern OpenAI's own tools, which are not there.
 */
function parseCallable(
  tool: Fields,
  type: "function" | "custom",
  namespace: string | undefined,
): Tool {
  const name = upstreamName(tool.requiredString("name"), namespace);
  const description = tool.string("description");
  if (type === "custom") {
    const schema = inputSchema(tool.fields("format"));
    return { name, description, schema, strict: false };
  }
  const strict = tool.boolean("strict") ?? false;
  return { name, description, schema: tool.object("parameters"), strict };
}

function inputSchema(format: Fields | undefined): JsonObject {
  const grammar =
    format?.string("type") === "grammar"
      ? ` It must match this ${format.string("syntax") ?? ""} grammar:\n` +
        (format.string("definition") ?? "")
      : "";
  return {
    type: "object",
    properties: {
      [INPUT]: { type: "string", description: `The whole input of the tool, as text.${grammar}` },
    },
    required: [INPUT],
    additionalProperties: false,
  };
}

function joined(first: string, second: string | undefined): string {
  return second === undefined ? first : `${first}\n\n${second}`;
}

/** Returns the name of a tool at an upstream, which has no namespaces. */
export function upstreamName(name: string, namespace: string | undefined): string {
  if (namespace === undefined) return name;
  const whole = `${namespace}${namespace.endsWith("_") ? "" : "__"}${name}`;
  if (whole.length <= LONGEST_NAME) return whole;
  const hash = createHash("sha256").update(whole).digest("hex").slice(0, 12);
  return `${whole.slice(0, LONGEST_NAME - hash.length - 1)}_${hash}`;
}

/** Bounds of what is kept while a call lives: no vendor accepts more tools, or longer names. */
const MOST_TOOLS = 1_000;
const LONGEST_KEPT_NAME = 128;

/** Returns the tools whose calls are not plain function calls, within bounds. Never throws. */
export function echoedTools(tools: unknown): ReadonlyMap<string, EchoedTool> {
  const found = new Map<string, EchoedTool>();
  const add = (tool: unknown, namespace: string | undefined): void => {
    if (!isObject(tool) || typeof tool["name"] !== "string") return;
    const { name } = tool;
    if (name.length > LONGEST_KEPT_NAME || found.size >= MOST_TOOLS) return;
    const kind = tool["type"] === "custom" ? "custom" : "function";
    if (kind === "custom" || namespace !== undefined)
      found.set(upstreamName(name, namespace), { kind, name, namespace });
  };
  for (const tool of listOf(tools)) {
    if (!isObject(tool)) continue;
    const { type, name } = tool;
    if (typeof type === "string" && isDefinedTool(type))
      found.set(type, { kind: type, name: type, namespace: undefined });
    else if (type !== "namespace") add(tool, undefined);
    else if (typeof name === "string" && name.length <= LONGEST_KEPT_NAME) {
      for (const inner of listOf(tool["tools"])) add(inner, name);
    }
  }
  return found;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Returns the arguments of the function that stands for a custom tool. */
export function customArguments(input: string): string {
  return JSON.stringify({ [INPUT]: input });
}

/** Returns the input of a custom tool; the arguments themselves if a model wrote others. */
export function customInput(text: string): string {
  const input = argumentsObject(text)?.[INPUT];
  return typeof input === "string" ? input : text;
}

export function parseToolChoice(fields: Fields): ToolChoice | undefined {
  const choice = fields.raw("tool_choice");
  if (choice === undefined) return undefined;
  if (choice === "none") return { kind: "none" };
  if (choice === "auto" || choice === "required") return { kind: choice, only: undefined };
  const object = fields.fields("tool_choice");
  if (object === undefined) return undefined;
  const type = object.requiredString("type");
  if (type !== "allowed_tools") return { kind: "required", only: [chosenName(object, type)] };
  const kind =
    object.oneOf("mode", ["auto", "required"]) ?? object.fail("mode", "auto or required");
  const only = object.each("tools", (tool) => chosenName(tool, tool.requiredString("type")));
  return { kind, only };
}

function chosenName(choice: Fields, type: string): string {
  if (isDefinedTool(type)) return type;
  if (type !== "function" && type !== "custom")
    throw unsupported(choice.path, `chooses the tool ${type}, which only OpenAI has`);
  return upstreamName(choice.requiredString("name"), choice.string("namespace"));
}
