/** Gemini's `Schema` (a subset of OpenAPI 3.0, types in capitals) as JSON Schema. */
import { isObject } from "../fields.ts";
import type { JsonObject } from "../fields.ts";

/** 64-bit integers are strings in protobuf JSON. */
const INTEGERS = new Set([
  "minItems",
  "maxItems",
  "minLength",
  "maxLength",
  "minProperties",
  "maxProperties",
]);

export function toJsonSchema(schema: JsonObject): JsonObject {
  const result: JsonObject = {};
  for (const [key, value] of Object.entries(schema)) {
    if (key === "nullable" || key === "propertyOrdering" || key === "property_ordering") continue;
    if (key === "type" && typeof value === "string") result["type"] = value.toLowerCase();
    else if (key === "properties" && isObject(value)) {
      result["properties"] = Object.fromEntries(
        Object.entries(value).map(([name, item]) => [name, convert(item)]),
      );
    } else if (key === "items") result["items"] = convert(value);
    else if ((key === "anyOf" || key === "any_of") && Array.isArray(value))
      result["anyOf"] = value.map(convert);
    else if (key === "example") result["examples"] = [value];
    else if (INTEGERS.has(key) && typeof value === "string") result[key] = Number(value);
    else result[key] = value;
  }
  if (schema["nullable"] === true && result["type"] !== undefined)
    result["type"] = [result["type"], "null"];
  return result;
}

function convert(value: unknown): unknown {
  return isObject(value) ? toJsonSchema(value) : value;
}
