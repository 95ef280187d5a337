/**
 * Frames of JSON-RPC 2.0 as MCP uses it: one message, or a batch (revision 2025-03-26 and before).
 * The text of a frame is forwarded as it came; only the members that decide its way are parsed.
 */
import { JsonError, type JsonScan, scanJson } from "../../platform/json/scan.ts";
import { parseJson, parseScanned } from "../../platform/json/parse.ts";
import { MESSAGE_JSON } from "./limits.ts";

export type RpcId = string | number;

/** A message, with what decides its way. */
export type RpcMessage =
  | {
      readonly kind: "request";
      readonly id: RpcId;
      readonly method: string;
      /** `params._meta.progressToken`. */
      readonly progressToken: RpcId | undefined;
      readonly text: string;
    }
  | {
      readonly kind: "notification";
      readonly method: string;
      /** `params.progressToken` of `notifications/progress`. */
      readonly progressToken: RpcId | undefined;
      /** `params.requestId` of `notifications/cancelled`. */
      readonly requestId: RpcId | undefined;
      readonly text: string;
    }
  | {
      readonly kind: "response";
      /** undefined for an error of a request whose id could not be read. */
      readonly id: RpcId | undefined;
      readonly failed: boolean;
      readonly text: string;
    };

export interface RpcFrame {
  readonly messages: readonly RpcMessage[];
  /** Ids of the requests in it, in order. */
  readonly requests: readonly RpcId[];
  /** The frame as it came. */
  readonly text: string;
}

/** Error for a frame that is not JSON-RPC; its message is for clients. */
export class UnreadableFrame extends Error {
  constructor(problem: string) {
    super(`The frame is not a JSON-RPC 2.0 message: ${problem}.`);
    this.name = "UnreadableFrame";
  }
}

const MAX_BATCH = 128;
const MAX_ID = 1_024;

/** @throws UnreadableFrame */
export function readFrame(bytes: Buffer): RpcFrame {
  try {
    const text = bytes.toString("utf8");
    const scan = scanJson(bytes, MESSAGE_JSON);
    const messages =
      scan.members === undefined
        ? batch(bytes, scan)
        : [messageOf(memberReader(bytes, scan), text)];
    const requests = messages.flatMap((message) =>
      message.kind === "request" ? [message.id] : [],
    );
    return { messages, requests, text };
  } catch (error) {
    if (error instanceof JsonError) throw new UnreadableFrame(error.message);
    throw error;
  }
}

/** Parses the text of a message. @returns undefined if it is not JSON after all */
export function parseMessage(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const { value } = parseJson(Buffer.from(text), MESSAGE_JSON);
    return isObject(value) ? value : undefined;
  } catch (error) {
    if (error instanceof JsonError) return undefined;
    throw error;
  }
}

/** Returns a key that tells 1 from "1". */
export function idKey(id: RpcId): string {
  return typeof id === "string" ? `"${id}` : String(id);
}

/** Returns the value of a member, undefined if it is absent. */
type MemberReader = (key: string) => unknown;

function memberReader(bytes: Buffer, scan: JsonScan): MemberReader {
  return (key) => {
    const member = scan.members?.find((candidate) => candidate.key === key);
    if (member === undefined) return undefined;
    return parseScanned(bytes, scan, member.valueStart, member.valueEnd);
  };
}

function batch(bytes: Buffer, scan: JsonScan): readonly RpcMessage[] {
  const value = parseScanned(bytes, scan);
  if (!Array.isArray(value)) throw new UnreadableFrame("it is not an object");
  if (value.length === 0) throw new UnreadableFrame("the batch is empty");
  if (value.length > MAX_BATCH)
    throw new UnreadableFrame(`a batch of more than ${MAX_BATCH} messages`);
  return value.map((member: unknown) => {
    if (!isObject(member)) throw new UnreadableFrame("a member of the batch is not an object");
    return messageOf((key) => member[key], JSON.stringify(member));
  });
}

function messageOf(read: MemberReader, text: string): RpcMessage {
  const method = read("method");
  const id = read("id");
  if (method === undefined) {
    const failed = read("error") !== undefined;
    return { kind: "response", id: idOf(id ?? undefined), failed, text };
  }
  if (typeof method !== "string") throw new UnreadableFrame("method is not a string");
  if (id === undefined) {
    return {
      kind: "notification",
      method,
      progressToken: method === "notifications/progress" ? token(read, "progressToken") : undefined,
      requestId: method === "notifications/cancelled" ? token(read, "requestId") : undefined,
      text,
    };
  }
  const requestId = idOf(id);
  if (requestId === undefined) throw new UnreadableFrame("the id of a request is null");
  const params = read("params");
  const meta = isObject(params) ? params["_meta"] : undefined;
  const progress = isObject(meta) ? meta["progressToken"] : undefined;
  return {
    kind: "request",
    id: requestId,
    method,
    progressToken: isId(progress) ? progress : undefined,
    text,
  };
}

function token(read: MemberReader, key: string): RpcId | undefined {
  const params = read("params");
  const value = isObject(params) ? params[key] : undefined;
  return isId(value) ? value : undefined;
}

function idOf(id: unknown): RpcId | undefined {
  if (id === undefined) return undefined;
  if (!isId(id)) {
    throw new UnreadableFrame(
      `id is not a string of at most ${MAX_ID} characters or a safe number`,
    );
  }
  return id;
}

/** A larger number would not survive parsing: two ids could become one. */
function isId(value: unknown): value is RpcId {
  if (typeof value === "string") return value.length <= MAX_ID;
  return typeof value === "number" && Math.abs(value) <= Number.MAX_SAFE_INTEGER;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
