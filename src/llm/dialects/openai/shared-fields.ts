/** Request fields that chat completions and the Responses API of OpenAI share. */
import type { Fields } from "../fields.ts";
import type { Leftover, Reasoning, ResponseFormat } from "../model.ts";

const EFFORTS = ["none", "minimal", "low", "medium", "high", "xhigh", "max"] as const;

/** @param key name of the field, which differs between the two APIs */
export function parseEffort(fields: Fields | undefined, key: string): Reasoning | undefined {
  const effort = fields?.oneOf(key, EFFORTS);
  if (effort === undefined) return undefined;
  return effort === "none" ? { kind: "off" } : { kind: "effort", effort };
}

/** `safety_identifier` is the newer name and wins. */
export function parseUser(fields: Fields): string | undefined {
  const older = fields.string("user");
  const user = fields.string("safety_identifier") ?? older;
  return user === "" ? undefined : user;
}

/** @param definitionOf returns the object that holds the schema, which differs between the APIs */
export function parseFormat(
  format: Fields | undefined,
  leftovers: Leftover[],
  definitionOf: (format: Fields) => Fields,
): ResponseFormat | undefined {
  if (format === undefined) return undefined;
  const type =
    format.oneOf("type", ["text", "json_object", "json_schema"]) ?? format.fail("type", "a string");
  if (type === "text") return undefined;
  if (type === "json_object") return { kind: "json_object" };
  const definition = definitionOf(format);
  const parsed: ResponseFormat = {
    kind: "json_schema",
    name: definition.string("name") ?? "response",
    description: definition.string("description"),
    schema: definition.object("schema") ?? {},
    strict: definition.boolean("strict"),
  };
  if (definition !== format) definition.rest(leftovers);
  format.rest(leftovers);
  return parsed;
}
