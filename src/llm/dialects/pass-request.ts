/**
 * A request to an upstream of the client's own dialect: the client's bytes, with only the necessary
 * replacements.
 */
import { stripForeign } from "./foreign.ts";
import type { OutputLimitField, RequestFormat } from "./contract.ts";
import { BadRequestError } from "./dialect.ts";
import { isObject, type JsonObject } from "./fields.ts";
import type { JsonBody } from "../request/json-body.ts";

export interface PassChange {
  /** Model to request; undefined keeps the body's. Ignored if the path contains it. */
  readonly model: string | undefined;
  readonly stream: boolean;
  /** Maximum output tokens to request, if the body contains none. */
  readonly outputCap?: OutputCap | undefined;
}

export interface OutputCap {
  /** Name of the field at the endpoint. */
  readonly field: OutputLimitField;
  readonly tokens: number;
}

interface Splice {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

const USAGE_OPTION = '"stream_options":{"include_usage":true}';

/**
 * Returns the body in pieces, its own bytes between replacements; undefined if nothing changes.
 * @throws BadRequestError
 */
export function passRequest(
  dialect: RequestFormat,
  original: JsonBody,
  change: PassChange,
): readonly Buffer[] | undefined {
  const body = stripForeign(dialect, original);
  const splices: Splice[] = [];
  if (change.model !== undefined && dialect.modelIsInBody) {
    const splice = spliceModel(body, change.model);
    if (splice !== undefined) splices.push(splice);
  }
  if (change.stream && dialect.usageIsAskedFor) {
    const splice = spliceUsageOption(body);
    if (splice !== undefined) splices.push(splice);
  }
  if (change.outputCap !== undefined) splices.push(spliceCap(body, change.outputCap));
  if (splices.length > 0) return apply(body.raw, splices);
  return body === original ? undefined : [body.raw];
}

function spliceModel(body: JsonBody, model: string): Splice | undefined {
  const text = JSON.stringify(model);
  const member = body.member("model");
  if (member === undefined) return insertFirst(body, `"model":${text}`);
  const { valueStart: start, valueEnd: end } = member;
  return body.text(member) === text ? undefined : { start, end, text };
}

/**
 * OpenAI sends usage on a stream only on request; a call without the option must still be billed.
 */
function spliceUsageOption(body: JsonBody): Splice | undefined {
  const member = body.member("stream_options");
  if (member === undefined) return insertFirst(body, USAGE_OPTION);
  const { valueStart: start, valueEnd: end } = member;
  const value = body.get("stream_options");
  if (value === null) return { start, end, text: '{"include_usage":true}' };
  if (!isObject(value))
    throw new BadRequestError("stream_options must be a JSON object", "stream_options");
  if (value["include_usage"] === true) return undefined;
  return { start, end, text: JSON.stringify({ ...value, include_usage: true }) };
}

/** @throws BadRequestError if a tolerant upstream could mistake another field for this one */
function spliceCap(body: JsonBody, { field, tokens }: OutputCap): Splice {
  const plain = (name: string): string => name.toLowerCase().replaceAll("_", "");
  const member = body.members.find(({ key }) => plain(key) === plain(field));
  if (field !== "generationConfig") {
    if (member === undefined) return insertFirst(body, `"${field}":${tokens}`);
    if (member.key !== field)
      throw new BadRequestError(`write ${field} for ${member.key}`, member.key);
    return { start: member.valueStart, end: member.valueEnd, text: String(tokens) };
  }
  if (member === undefined) return insertFirst(body, `"${field}":{"maxOutputTokens":${tokens}}`);
  const { valueStart: start, valueEnd: end } = member;
  const { max_output_tokens: _none, ...config } = body.get(member.key) as JsonObject;
  return { start, end, text: JSON.stringify({ ...config, maxOutputTokens: tokens }) };
}

function insertFirst({ raw, members }: JsonBody, member: string): Splice {
  const at = raw.indexOf("{") + 1;
  return { start: at, end: at, text: members.length === 0 ? member : `${member},` };
}

function apply(raw: Buffer, splices: readonly Splice[]): Buffer[] {
  const parts: Buffer[] = [];
  let at = 0;
  for (const { start, end, text } of splices.toSorted((a, b) => a.start - b.start)) {
    parts.push(raw.subarray(at, start), Buffer.from(text, "utf8"));
    at = end;
  }
  parts.push(raw.subarray(at));
  return parts;
}
