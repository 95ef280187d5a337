/**
 * Tools that OpenAI defines and the client runs: shells, and patches of files. Elsewhere they are
 * functions of the same name, with the members of OpenAI's calls as arguments. Field names:
 * `FunctionShellTool`, `ApplyPatchTool` and `Tool.LocalShell` of the openai SDK, and their calls.
 */
import { type Fields, isObject, type JsonObject } from "../fields.ts";
import type { DefinedToolName, Tool } from "../model.ts";
import { argumentsObject } from "../tool-arguments.ts";

const STRINGS = { type: "array", items: { type: "string" } };
const MILLISECONDS = { type: "integer", description: "Longest run, in milliseconds." };

interface DefinedTool {
  readonly description: string;
  readonly properties: JsonObject;
  readonly required: readonly string[];
  /** Member of a call's item that has the arguments. */
  readonly member: "action" | "operation";
  /** Completes the arguments that a model wrote; wrong ones are left for the client to refuse. */
  complete(written: JsonObject): JsonObject;
}

const TOOLS: Readonly<Record<DefinedToolName, DefinedTool>> = {
  shell: {
    description: "Runs commands in a shell on the user's machine, each by itself.",
    properties: {
      commands: STRINGS,
      timeout_ms: MILLISECONDS,
      max_output_length: { type: "integer", description: "Longest output, in characters." },
    },
    required: ["commands"],
    member: "action",
    complete: ({ commands, timeout_ms, max_output_length }) => ({
      commands: stringsOf(commands),
      timeout_ms: numberOf(timeout_ms),
      max_output_length: numberOf(max_output_length),
    }),
  },
  local_shell: {
    description: "Runs one command on the user's machine, given as a list of its arguments.",
    properties: {
      command: STRINGS,
      working_directory: { type: "string" },
      timeout_ms: MILLISECONDS,
    },
    required: ["command"],
    member: "action",
    complete: ({ command, working_directory, timeout_ms }) => ({
      type: "exec",
      command: stringsOf(command),
      env: {},
      working_directory: typeof working_directory === "string" ? working_directory : null,
      timeout_ms: numberOf(timeout_ms),
      user: null,
    }),
  },
  apply_patch: {
    description:
      "Creates, updates or deletes one file of the user. The diff has lines that begin with a " +
      "space (context), `-` (removed) or `+` (added), in sections that begin with `@@`, and no " +
      "header with the file's name. All lines of a new file begin with `+`.",
    properties: {
      type: { type: "string", enum: ["create_file", "update_file", "delete_file"] },
      path: { type: "string" },
      diff: { type: "string", description: "Not for delete_file." },
    },
    required: ["type", "path"],
    member: "operation",
    complete: ({ type, path, diff }) => ({
      type: typeof type === "string" ? type : "update_file",
      path: typeof path === "string" ? path : "",
      ...(typeof diff === "string" ? { diff } : {}),
    }),
  },
};

export function isDefinedTool(type: string): type is DefinedToolName {
  return Object.hasOwn(TOOLS, type);
}

/** Returns the function that stands for a tool. */
export function definedTool(name: DefinedToolName): Tool {
  const { description, properties, required } = TOOLS[name];
  const schema = { type: "object", properties, required, additionalProperties: false };
  return { name, description, schema, strict: false };
}

/** Returns the members of a call's item. @param text arguments that a model wrote */
export function definedCall(name: DefinedToolName, text: string): JsonObject {
  const tool = TOOLS[name];
  const environment = name === "shell" ? { environment: { type: "local" } } : {};
  return { [tool.member]: tool.complete(argumentsObject(text) ?? {}), ...environment };
}

/** Returns the arguments of a call that a client sends back. */
export function definedArguments(name: DefinedToolName, item: Fields): string {
  const { member, properties } = TOOLS[name];
  const given = item.object(member) ?? item.fail(member, "a JSON object");
  const known = Object.entries(given).filter(
    ([key, value]) => Object.hasOwn(properties, key) && value !== null,
  );
  return JSON.stringify(Object.fromEntries(known));
}

/** Returns the result of a tool as text: its own, or the streams and the exit codes as JSON. */
export function definedOutput(item: Fields): { readonly text: string; readonly failed: boolean } {
  const output = item.raw("output");
  const failed = item.string("status") === "failed";
  if (output === undefined) return { text: "", failed };
  return { text: typeof output === "string" ? output : JSON.stringify(output), failed };
}

/** Returns whether a shell is in a container of OpenAI's, which the client does not run. */
export function isHosted(tool: Fields): boolean {
  const environment = tool.raw("environment");
  return isObject(environment) && environment["type"] !== "local";
}

function stringsOf(value: unknown): readonly string[] {
  if (typeof value === "string") return [value];
  return Array.isArray(value) ? value.filter((one) => typeof one === "string") : [];
}

function numberOf(value: unknown): number | null {
  return typeof value === "number" ? value : null;
}
