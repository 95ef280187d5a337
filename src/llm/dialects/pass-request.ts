/** A request to an upstream of the client's own dialect: the client's bytes, with only what must differ replaced. */
import { stripForeign } from "./foreign.ts";
import { BadRequestError } from "./dialect.ts";
import type { DialectName } from "./dialect.ts";
import { isObject } from "./fields.ts";
import { scanMembers } from "./json-members.ts";
import type { Member } from "./json-members.ts";

export interface PassChange {
  /** The model to ask for; undefined keeps the body's. Ignored for Gemini, whose path names it. */
  readonly model: string | undefined;
  readonly stream: boolean;
  /** The most output tokens to ask for, where the body names none. */
  readonly outputCap?: OutputCap | undefined;
}

export interface OutputCap {
  /** What the endpoint calls it. */
  readonly field: "max_tokens" | "max_completion_tokens" | "max_output_tokens" | "generationConfig";
  readonly tokens: number;
}

interface Splice {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

const USAGE_OPTION = '"stream_options":{"include_usage":true}';

/**
 * Returns `raw` itself when nothing has to change.
 * @throws BadRequestError when a top-level key stands twice.
 */
export function passRequest(
  dialect: DialectName,
  raw: Buffer,
  body: unknown,
  change: PassChange,
): Buffer {
  const native = stripForeign(dialect, raw, body);
  const members = scanMembers(native);
  const splices: Splice[] = [];
  if (change.model !== undefined && dialect !== "gemini") {
    const splice = spliceModel(native, members, change.model);
    if (splice !== undefined) splices.push(splice);
  }
  if (change.stream && dialect === "openai") {
    const splice = spliceUsageOption(native, members);
    if (splice !== undefined) splices.push(splice);
  }
  if (change.outputCap !== undefined) splices.push(spliceCap(native, members, change.outputCap));
  return splices.length === 0 ? native : apply(native, splices);
}

function spliceModel(raw: Buffer, members: readonly Member[], model: string): Splice | undefined {
  const text = JSON.stringify(model);
  const member = members.find(({ key }) => key === "model");
  if (member === undefined) return insertFirst(raw, members, `"model":${text}`);
  const { valueStart: start, valueEnd: end } = member;
  return raw.toString("utf8", start, end) === text ? undefined : { start, end, text };
}

/** OpenAI sends usage on a stream only when asked; a call must not escape billing by not asking. */
function spliceUsageOption(raw: Buffer, members: readonly Member[]): Splice | undefined {
  const member = members.find(({ key }) => key === "stream_options");
  if (member === undefined) return insertFirst(raw, members, USAGE_OPTION);
  const { valueStart: start, valueEnd: end } = member;
  const value: unknown = JSON.parse(raw.toString("utf8", start, end));
  if (value === null) return { start, end, text: '{"include_usage":true}' };
  if (!isObject(value))
    throw new BadRequestError("stream_options must be a JSON object", "stream_options");
  scanMembers(raw, start);
  if (value["include_usage"] === true) return undefined;
  return { start, end, text: JSON.stringify({ ...value, include_usage: true }) };
}

/** @throws BadRequestError where a tolerant upstream could take another field for this one */
function spliceCap(raw: Buffer, members: readonly Member[], { field, tokens }: OutputCap): Splice {
  const member = members.find(
    ({ key }) => key.toLowerCase().replaceAll("_", "") === field.toLowerCase().replaceAll("_", ""),
  );
  if (field !== "generationConfig") {
    if (member === undefined) return insertFirst(raw, members, `"${field}":${tokens}`);
    if (member.key !== field)
      throw new BadRequestError(`write ${field} for ${member.key}`, member.key);
    return { start: member.valueStart, end: member.valueEnd, text: String(tokens) };
  }
  if (member === undefined)
    return insertFirst(raw, members, `"${field}":{"maxOutputTokens":${tokens}}`);
  const { valueStart: start, valueEnd: end } = member;
  scanMembers(raw, start);
  const { max_output_tokens: _none, ...config } = JSON.parse(
    raw.toString("utf8", start, end),
  ) as Record<string, unknown>;
  return { start, end, text: JSON.stringify({ ...config, maxOutputTokens: tokens }) };
}

function insertFirst(raw: Buffer, members: readonly Member[], member: string): Splice {
  const at = raw.indexOf("{") + 1;
  return { start: at, end: at, text: members.length === 0 ? member : `${member},` };
}

function apply(raw: Buffer, splices: readonly Splice[]): Buffer {
  const parts: Buffer[] = [];
  let at = 0;
  for (const { start, end, text } of splices.toSorted((a, b) => a.start - b.start)) {
    parts.push(raw.subarray(at, start), Buffer.from(text, "utf8"));
    at = end;
  }
  parts.push(raw.subarray(at));
  return Buffer.concat(parts);
}
