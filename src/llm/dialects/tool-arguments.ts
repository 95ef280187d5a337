/**
 * Tool arguments: JSON text in OpenAI's dialect, an object in the others. Empty means `{}`, never
 * `""`.
 */
import { isObject } from "./fields.ts";
import type { JsonObject } from "./fields.ts";

export function argumentsText(value: unknown): string {
  return isObject(value) ? JSON.stringify(value) : "{}";
}

/**
 * Returns undefined if the text is not a JSON object, for example because the model was stopped in
 * the middle of it.
 */
export function argumentsObject(text: string): JsonObject | undefined {
  if (text.trim() === "") return {};
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
