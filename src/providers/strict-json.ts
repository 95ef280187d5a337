/**
 * Parses JSON that every parser interprets identically. Of two equal keys, one parser takes the
 * first and another the last, so the evaluated request might differ from the executed one:
 * duplicate keys are refused, as are bytes that are not UTF-8 and a byte order mark.
 */
import { parseJson } from "../platform/json/parse.ts";
import { JSON_LIMITS, JsonError, type JsonLimits } from "../platform/json/scan.ts";

export type StrictJson =
  | null
  | boolean
  | number
  | string
  | readonly StrictJson[]
  | { readonly [key: string]: StrictJson };

export type ParsedJson =
  | { readonly kind: "parsed"; readonly value: StrictJson }
  | { readonly kind: "invalid"; readonly reason: string };

export function isJsonObject(
  value: StrictJson | undefined,
): value is { readonly [key: string]: StrictJson } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export interface StrictJsonMember {
  /** Name of the member; the items of an array have the array's name. Empty for the whole value. */
  readonly key: string;
  readonly value: StrictJson;
}

/**
 * Yields every value of a document, including the document itself; items of an array have the
 * array's name. Members with names in `skipped` are omitted, with everything in them.
 */
export function* jsonMembers(
  document: StrictJson,
  skipped?: ReadonlySet<string>,
): Generator<StrictJsonMember> {
  const open: StrictJsonMember[] = [{ key: "", value: document }];
  for (let member = open.pop(); member !== undefined; member = open.pop()) {
    const { key, value } = member;
    if (skipped?.has(key) === true) continue;
    yield member;
    if (Array.isArray(value))
      for (const item of value as StrictJson[]) open.push({ key, value: item });
    else if (isJsonObject(value))
      for (const [name, inner] of Object.entries(value)) open.push({ key: name, value: inner });
  }
}

/** Bodies for services may have more members than a request to a model. */
const LIMITS: JsonLimits = { ...JSON_LIMITS, members: 10_000 };

export function parseStrictJson(bytes: Uint8Array): ParsedJson {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  try {
    return { kind: "parsed", value: parseJson(buffer, LIMITS).value as StrictJson };
  } catch (error) {
    const problem = error instanceof JsonError ? `: ${error.message}` : "";
    return { kind: "invalid", reason: `is not JSON that every parser reads alike${problem}` };
  }
}
