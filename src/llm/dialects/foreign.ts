/**
 * Removes another vendor's reasoning from a conversation that goes back to its own dialect, for
 * example after a fallback: vendors refuse signatures that they did not create.
 */
import type { RequestFormat } from "./contract.ts";
import { isObject } from "./fields.ts";
import { JsonBody } from "../request/json-body.ts";

/** Returns `body` itself if there is nothing to remove. */
export function stripForeign({ foreignReasoning }: RequestFormat, body: JsonBody): JsonBody {
  const { mark, list: key } = foreignReasoning;
  if (!body.raw.includes(mark)) return body;
  const list = body.value[key];
  if (!Array.isArray(list)) return body;
  const cleaned = list.map((item: unknown) =>
    isObject(item) ? foreignReasoning.strip(item) : item,
  );
  if (cleaned.every((item, index) => item === list[index])) return body;
  const kept = { ...body.value, [key]: cleaned.filter((item) => item !== undefined) };
  return JsonBody.read(Buffer.from(JSON.stringify(kept), "utf8"));
}
