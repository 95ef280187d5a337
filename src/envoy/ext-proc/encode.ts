/**
 * Encodes a ProcessingResponse, by hand for the same reason as decode.ts. Every function returns
 * the argument of {@link GrpcStream.send}: a buffer whose message starts at MESSAGE_OFFSET, and for
 * a large body the body's own buffers after it, which are not copied.
 */
import { bytesField, fieldHeader, varintBytes, writeVarint } from "../protobuf/writer.ts";
import { MESSAGE_OFFSET } from "../grpc/connection.ts";
import type {
  ContinueReply,
  HeaderChanges,
  ImmediateReply,
  PhaseKind,
  ResponseBodyMode,
} from "./messages.ts";

/** A message, as the arguments of {@link GrpcStream.send}. */
export type Outgoing = readonly [first: Buffer, ...rest: Buffer[]];

/** Field of ProcessingResponse that answers each phase. */
const ANSWER_FIELD: Record<PhaseKind, number> = {
  request_headers: 1,
  response_headers: 2,
  request_body: 3,
  response_body: 4,
  request_trailers: 5,
  response_trailers: 6,
};

const IMMEDIATE_RESPONSE = 7;
const MODE_OVERRIDE = 9;

/** HeaderValueOption.append_action = OVERWRITE_IF_EXISTS_OR_ADD, keep_empty_value unset. */
const OVERWRITE = Buffer.from([(3 << 3) | 0, 2]);

/** ProcessingMode: request_header_mode = 1, response_header_mode = 2, response_body_mode = 4. */
function modeOverride(bodySendMode: number): Buffer {
  const SEND = 1;
  return bytesField(
    MODE_OVERRIDE,
    Buffer.from([(1 << 3) | 0, SEND, (2 << 3) | 0, SEND, (4 << 3) | 0, bodySendMode]),
  );
}

/** Indexed by the numbers of BodySendMode. */
const MODES: Record<ResponseBodyMode, Buffer> = {
  streamed: modeOverride(1),
  buffered: modeOverride(2),
};

/** Buffers of a message, collected from the inside out, with their total length. */
interface Parts {
  readonly list: Buffer[];
  length: number;
}

function wrap(number: number, parts: Parts): Parts {
  const prefix = fieldHeader(number, parts.length);
  parts.list.unshift(prefix);
  parts.length += prefix.length;
  return parts;
}

function add(parts: Parts, buffer: Buffer): void {
  parts.list.push(buffer);
  parts.length += buffer.length;
}

/**
 * HeaderMutation: set_headers = 1 (HeaderValueOption { header = 1 { key = 1, raw_value = 3 } }),
 * remove_headers = 2.
 */
export function encodeHeaderChanges(changes: HeaderChanges): Buffer {
  let size = 0;
  const set = changes.set ?? [];
  const remove = changes.remove ?? [];
  const lengths: number[] = [];
  for (const [name, value] of set) {
    const valueBytes = Buffer.byteLength(value);
    const header =
      1 + varintBytes(name.length) + name.length + 1 + varintBytes(valueBytes) + valueBytes;
    const option = 1 + varintBytes(header) + header + OVERWRITE.length;
    lengths.push(valueBytes, header, option);
    size += 1 + varintBytes(option) + option;
  }
  for (const name of remove) size += 1 + varintBytes(name.length) + name.length;
  const out = Buffer.allocUnsafe(size);
  let at = 0;
  set.forEach(([name, value], i) => {
    out[at++] = (1 << 3) | 2;
    at = writeVarint(out, at, lengths[i * 3 + 2] as number);
    out[at++] = (1 << 3) | 2;
    at = writeVarint(out, at, lengths[i * 3 + 1] as number);
    out[at++] = (1 << 3) | 2;
    at = writeVarint(out, at, name.length);
    at += out.write(name, at, "latin1");
    out[at++] = (3 << 3) | 2;
    at = writeVarint(out, at, lengths[i * 3] as number);
    at += out.write(value, at, "utf8");
    at += OVERWRITE.copy(out, at);
  });
  for (const name of remove) {
    out[at++] = (2 << 3) | 2;
    at = writeVarint(out, at, name.length);
    at += out.write(name, at, "latin1");
  }
  return out;
}

function finish(parts: Parts): Buffer {
  const out = Buffer.allocUnsafe(MESSAGE_OFFSET + parts.length);
  let at = MESSAGE_OFFSET;
  for (const part of parts.list) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

/** Maximum size in bytes of a body that is copied. */
const COPIED_BODY = 4_096;

/**
 * CommonResponse: status = 1 (CONTINUE_AND_REPLACE 1), header_mutation = 2, body_mutation = 3 {
 * body = 1 }, clear_route_cache = 5. Fields may be in any order: the body is the last.
 */
export function encodeContinue(phase: PhaseKind, reply: ContinueReply): Outgoing {
  const body = reply.body === undefined ? [] : [reply.body].flat();
  const bodyBytes = byteLength(body);
  const common: Parts = { list: [], length: 0 };
  if (reply.replaceAll === true) add(common, CONTINUE_AND_REPLACE);
  if (reply.headers !== undefined) {
    const changes = encodeHeaderChanges(reply.headers);
    add(common, fieldHeader(2, changes.length));
    add(common, changes);
  }
  if (reply.clearRouteCache === true) add(common, CLEAR_ROUTE_CACHE);
  // An empty replacement must be sent as clear_body = 2: an empty `body` is not a mutation.
  if (reply.body !== undefined && bodyBytes === 0) add(common, CLEAR_BODY);
  if (bodyBytes > 0) {
    const inner = fieldHeader(1, bodyBytes);
    add(common, fieldHeader(3, inner.length + bodyBytes));
    add(common, inner);
    common.length += bodyBytes;
  }
  wrap(1, common);
  wrap(ANSWER_FIELD[phase], common);
  common.length -= bodyBytes;
  if (reply.responseBodyMode !== undefined) {
    const mode = MODES[reply.responseBodyMode];
    common.list.unshift(mode);
    common.length += mode.length;
  }
  if (bodyBytes > COPIED_BODY) return [finish(common), ...body];
  for (const part of body) add(common, part);
  return [finish(common)];
}

function byteLength(buffers: readonly Buffer[]): number {
  return buffers.reduce((sum, { length }) => sum + length, 0);
}

const CLEAR_ROUTE_CACHE = Buffer.from([(5 << 3) | 0, 1]);
const CONTINUE_AND_REPLACE = Buffer.from([(1 << 3) | 0, 1]);
const CLEAR_BODY = bytesField(3, Buffer.from([(2 << 3) | 0, 1]));

/** Encodes "continue without changes". The buffer may be sent only once. */
export function encodeUnchanged(phase: PhaseKind): Outgoing {
  const out = Buffer.allocUnsafe(MESSAGE_OFFSET + 2);
  out[MESSAGE_OFFSET] = (ANSWER_FIELD[phase] << 3) | 2;
  out[MESSAGE_OFFSET + 1] = 0;
  return [out];
}

/** Marks a local reply as ours (`details` becomes part of Envoy's response code details). */
export const IMMEDIATE_DETAILS = "svc";

/** ImmediateResponse: status = 1 { code = 1 }, headers = 2, body = 3, details = 5. */
export function encodeImmediate(reply: ImmediateReply): Outgoing {
  const parts: Parts = { list: [], length: 0 };
  const status = Buffer.allocUnsafe(1 + varintBytes(reply.status));
  status[0] = (1 << 3) | 0;
  writeVarint(status, 1, reply.status);
  add(parts, bytesField(1, status));
  if (reply.headers !== undefined) add(parts, bytesField(2, encodeHeaderChanges(reply.headers)));
  const body = typeof reply.body === "string" ? Buffer.from(reply.body) : reply.body;
  add(parts, fieldHeader(3, body.length));
  add(parts, body);
  add(parts, bytesField(5, Buffer.from(IMMEDIATE_DETAILS)));
  wrap(IMMEDIATE_RESPONSE, parts);
  return [finish(parts)];
}
