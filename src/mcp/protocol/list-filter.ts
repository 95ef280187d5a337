/**
 * Removes items that a caller may not use from the lists in a server's messages. Everything else
 * stays byte for byte, the order of the list and its cursor too: numbers keep their digits, and
 * schemas of tools stay as they are.
 */
import { parseJson } from "../../platform/json/parse.ts";
import {
  type JsonLimits,
  type JsonMember,
  type JsonSpan,
  scanJson,
  scanJsonElements,
} from "../../platform/json/scan.ts";
import { isObject } from "./frame.ts";
import type { McpPolicy } from "./item-policy.ts";
import { type ItemKind, NAME_MEMBER } from "./names.ts";

/** A server's list may be long: schemas of some thousand tools. */
const LIMITS: JsonLimits = { depth: 128, values: 2_000_000, members: 256 };

const KINDS: readonly ItemKind[] = ["tools", "prompts", "resources"];

/** One replacement of bytes. */
interface Edit extends JsonSpan {
  readonly text: string;
}

/**
 * Filters the lists of a server's message, or of each message of a batch.
 *
 * @param json one JSON text in UTF-8
 * @returns undefined if nothing had to be removed
 * @throws JsonError if the text cannot be read with certainty; it must then not be forwarded
 */
export function filterLists(json: Buffer, policy: McpPolicy): Buffer | undefined {
  const edits: Edit[] = [];
  const messages = scanJsonElements(json, LIMITS) ?? [{ start: 0, end: json.length }];
  for (const span of messages) filterMessage(json, span, policy, edits);
  return edits.length === 0 ? undefined : applied(json, edits);
}

function filterMessage(json: Buffer, span: JsonSpan, policy: McpPolicy, edits: Edit[]): void {
  const result = memberOf(json, span, "result");
  if (result === undefined) return;
  const { members } = scanJson(json.subarray(result.start, result.end), LIMITS);
  let isFiltered = false;
  for (const kind of KINDS) {
    const list = policy.isOpen(kind) ? undefined : find(members, kind, result.start);
    if (list === undefined) continue;
    isFiltered = true;
    filterList(json, list, kind, policy, edits);
  }
  // A list that depends on the caller must not be cached for others (2026-07-28, section Caching).
  const scope = isFiltered ? find(members, "cacheScope", result.start) : undefined;
  if (scope !== undefined) edits.push({ ...scope, text: '"private"' });
}

function filterList(
  json: Buffer,
  list: JsonSpan,
  kind: ItemKind,
  policy: McpPolicy,
  edits: Edit[],
): void {
  const bytes = json.subarray(list.start, list.end);
  const items = scanJsonElements(bytes, LIMITS);
  if (items === undefined) return;
  const kept = items.filter(({ start, end }) => {
    const item = parseJson(bytes.subarray(start, end), LIMITS).value;
    const name = isObject(item) ? item[NAME_MEMBER[kind]] : undefined;
    return typeof name === "string" && policy.deny(kind, name) === undefined;
  });
  if (kept.length === items.length) return;
  const texts = kept.map(({ start, end }) => bytes.toString("utf8", start, end));
  edits.push({ ...list, text: `[${texts.join(",")}]` });
}

/** Returns the offsets of a member's value, if the value at `span` is an object that has it. */
function memberOf(json: Buffer, { start, end }: JsonSpan, key: string): JsonSpan | undefined {
  return find(scanJson(json.subarray(start, end), LIMITS).members, key, start);
}

function find(
  members: readonly JsonMember[] | undefined,
  key: string,
  offset: number,
): JsonSpan | undefined {
  const member = members?.find((one) => one.key === key);
  return member && { start: offset + member.valueStart, end: offset + member.valueEnd };
}

function applied(json: Buffer, edits: readonly Edit[]): Buffer {
  const parts: Buffer[] = [];
  let at = 0;
  for (const { start, end, text } of edits.toSorted((a, b) => a.start - b.start)) {
    parts.push(json.subarray(at, start), Buffer.from(text));
    at = end;
  }
  return Buffer.concat([...parts, json.subarray(at)]);
}
