/**
 * Parses what a client sends: one JSON-RPC message, or a batch of them (revisions up to
 * 2025-03-26). The bytes that were parsed are the bytes that go upstream, so everything that two
 * parsers could read differently is refused: duplicate keys, spellings that differ in case alone, a
 * byte order mark, text that is not UTF-8, deep nesting.
 */
import { JsonError, type JsonLimits } from "../../platform/json/scan.ts";
import { parseJson } from "../../platform/json/parse.ts";
import { fold } from "./item-name.ts";
import type { RequestId } from "./json-rpc.ts";
import { RpcCode } from "./json-rpc.ts";
import { COMPLETE_METHOD, ITEM_METHODS, LIST_METHODS, LISTEN_METHOD } from "./names.ts";

/** A JSON object. */
export type RpcObject = Readonly<Record<string, unknown>>;

/** A request, or a notification if it has no id. */
export interface CallMessage {
  readonly kind: "request" | "notification";
  /** undefined for a notification. */
  readonly id: RequestId | undefined;
  readonly method: string;
  /** Empty if the message has none. */
  readonly params: RpcObject;
}

/** The client's answer to a request of the server (sampling, elicitation, roots). */
export interface AnswerMessage {
  readonly kind: "answer";
}

export type ClientMessage = CallMessage | AnswerMessage;

export interface Frame {
  /** In their order; one, unless it is a batch. */
  readonly messages: readonly ClientMessage[];
  readonly isBatch: boolean;
}

/** FrameError is an invalid frame. The message is for the client. */
export class FrameError extends Error {
  override readonly name = "FrameError";
  readonly code: number;
  /** The id of the request, if it could be read. */
  readonly id: RequestId | undefined;

  constructor(code: number, message: string, id?: RequestId) {
    super(message);
    this.code = code;
    this.id = id;
  }
}

const LIMITS: JsonLimits = { depth: 64, values: 200_000, members: 16 };

/** Messages of a batch; each of them may need its own answer. */
const MAX_BATCH = 100;

/** Characters of a method's name, and of an id. */
const MAX_METHOD = 256;
const MAX_ID = 1_024;

/** Members of a JSON-RPC message. */
const ENVELOPE = new Set(["jsonrpc", "id", "method", "params", "result", "error"]);

/** Members of `params` that a policy reads. */
const READ_PARAMS = ["name", "uri", "ref", "notifications", "_meta"];

/** Members that a policy reads in `params.ref` and `params.notifications`. */
const READ_MEMBERS = ["type", "name", "uri", "resourceSubscriptions"];

/** Methods that a policy concerns: a spelling that only resembles one of them is refused. */
const JUDGED_METHODS = new Set([
  ...Object.keys(ITEM_METHODS),
  ...Object.keys(LIST_METHODS),
  COMPLETE_METHOD,
  LISTEN_METHOD,
]);

/** Returns the ids of a frame's requests. */
export function idsOf({ messages }: Frame): readonly RequestId[] {
  return messages.flatMap((message) =>
    message.kind === "request" && message.id !== undefined ? [message.id] : [],
  );
}

/** @throws FrameError */
export function parseFrame(bytes: Buffer): Frame {
  const value = parse(bytes);
  if (!Array.isArray(value)) return { messages: [messageOf(value)], isBatch: false };
  if (value.length === 0) throw new FrameError(RpcCode.invalidRequest, "The batch is empty.");
  if (value.length > MAX_BATCH) {
    const message = `The batch has more than ${MAX_BATCH} messages.`;
    throw new FrameError(RpcCode.invalidRequest, message);
  }
  return { messages: value.map(messageOf), isBatch: true };
}

function parse(bytes: Buffer): unknown {
  try {
    return parseJson(bytes, LIMITS).value;
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw new FrameError(RpcCode.parseError, `The body is not acceptable JSON: ${error.message}.`);
  }
}

function messageOf(value: unknown): ClientMessage {
  if (!isObject(value)) throw invalid("A message must be a JSON object.");
  const id = idOf(value);
  const odd = Object.keys(value).find((key) => !ENVELOPE.has(key));
  if (odd !== undefined) throw invalid(`A message has no member ${shown(odd)}.`, id);
  if (value["jsonrpc"] !== "2.0") throw invalid('"jsonrpc" must be "2.0".', id);
  const { method, params } = value;
  if (method === undefined) return answerOf(value, id);
  if (typeof method !== "string" || method === "" || method.length > MAX_METHOD) {
    throw invalid(`"method" must be a text of 1 to ${MAX_METHOD} characters.`, id);
  }
  if ("result" in value || "error" in value) {
    throw invalid('A message has either "method", or "result" or "error".', id);
  }
  if (!JUDGED_METHODS.has(method) && JUDGED_METHODS.has(fold(method))) {
    throw invalid(`Write the method exactly as ${shown(fold(method))}.`, id);
  }
  // Limits count requests: what a tolerant server would execute needs an id.
  if (id === undefined && JUDGED_METHODS.has(method)) throw invalid(`${method} needs an "id".`);
  if (params !== undefined && !isObject(params)) throw invalid('"params" must be an object.', id);
  checkSpelling(params ?? {}, READ_PARAMS, "params", id);
  for (const key of ["ref", "notifications"]) {
    const inner = params?.[key];
    if (isObject(inner)) checkSpelling(inner, READ_MEMBERS, `params.${key}`, id);
  }
  return { kind: id === undefined ? "notification" : "request", id, method, params: params ?? {} };
}

function answerOf(value: RpcObject, id: RequestId | undefined): AnswerMessage {
  if (id === undefined && value["id"] !== null) throw invalid('An answer needs an "id".');
  if ("result" in value === "error" in value) {
    throw invalid('A message needs "method", "result" or "error".', id);
  }
  if ("params" in value) throw invalid('An answer has no "params".', id);
  return { kind: "answer" };
}

/** Returns a message's id; undefined if it has none, or null, which only answers may have. */
function idOf(message: RpcObject): RequestId | undefined {
  const { id } = message;
  if (id === undefined) return undefined;
  if (id === null && message["method"] === undefined) return undefined;
  if (typeof id === "string" && id.length <= MAX_ID) return id;
  if (typeof id === "number" && Number.isSafeInteger(id)) return id;
  throw invalid(`"id" must be a whole number, or a text of at most ${MAX_ID} characters.`);
}

/** Refuses members that a tolerant parser would take for one of `names`. */
function checkSpelling(
  object: RpcObject,
  names: readonly string[],
  place: string,
  id: RequestId | undefined,
): void {
  for (const key of Object.keys(object)) {
    if (names.includes(key)) continue;
    const exact = fold(key);
    if (names.some((name) => fold(name) === exact)) {
      throw invalid(`${place} has the member ${shown(key)}, which resembles a known one.`, id);
    }
  }
}

export function isObject(value: unknown): value is RpcObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function invalid(message: string, id?: RequestId): FrameError {
  return new FrameError(RpcCode.invalidRequest, message, id);
}

const MAX_SHOWN = 64;

/** A client's text in a message to this client. */
function shown(text: string): string {
  return JSON.stringify(text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}...` : text);
}
