/**
 * JSON that every parser reads alike. Of two equal keys one parser takes the first and another the last, so what is judged
 * here might not be what the service does: they are refused, as are bytes that are not UTF-8 and a byte order mark.
 */
export type Json =
  | null
  | boolean
  | number
  | string
  | readonly Json[]
  | { readonly [key: string]: Json };

export type ParsedJson =
  | { readonly kind: "parsed"; readonly value: Json }
  | { readonly kind: "invalid"; readonly reason: string };

export function isJsonObject(value: Json | undefined): value is { readonly [key: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Deeper nesting is refused: parsers differ in what they stand. */
const MAX_DEPTH = 128;

export function parseStrictJson(bytes: Uint8Array): ParsedJson {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return { kind: "invalid", reason: "is not UTF-8 text" };
  }
  try {
    const value = JSON.parse(text) as Json;
    const fault = findFault(text);
    return fault === undefined ? { kind: "parsed", value } : { kind: "invalid", reason: fault };
  } catch {
    return { kind: "invalid", reason: "is not JSON" };
  }
}

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],]/gs;

/** @param text valid JSON */
function findFault(text: string): string | undefined {
  /** Keys so far of each object that is open; undefined for an array. */
  const open: (Set<string> | undefined)[] = [];
  let keyNext = false;
  for (const [token] of text.matchAll(TOKEN)) {
    if (token === "{" || token === "[") {
      open.push(token === "{" ? new Set() : undefined);
      if (open.length > MAX_DEPTH) return "is nested too deeply";
      keyNext = token === "{";
    } else if (token === "}" || token === "]") {
      open.pop();
      keyNext = false;
    } else if (token === ",") keyNext = open.at(-1) !== undefined;
    else if (keyNext) {
      const keys = open.at(-1);
      const key = JSON.parse(token) as string;
      if (keys?.has(key) === true || key === "__proto__")
        return "holds a key twice, or one that is not to be";
      keys?.add(key);
      keyNext = false;
    }
  }
  return undefined;
}
