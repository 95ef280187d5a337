/**
 * Encodes and decodes ext_authz messages by hand, because there is one of each per request and few
 * fields are used. Field numbers are those of
 * envoy/service/auth/v3/{external_auth,attribute_context}.proto, envoy/config/core/v3/base.proto,
 * google/rpc/status.proto and google/protobuf/struct.proto.
 */
import { field, Reader } from "../wire/reader.ts";

/**
 * The request as Envoy sends it with the filter's configuration (`encode_raw_headers`,
 * `include_tls_session`, `pack_as_bytes`).
 */
export interface AuthzRequest {
  readonly method: string;
  /** Path with its query. */
  readonly path: string;
  readonly authority: string;
  readonly scheme: string;
  /** Headers without pseudo headers; repeated ones separate, in order. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** Empty if no body was requested, or there is none. */
  readonly body: Buffer;
  /** Server name of the TLS handshake; undefined if there was none. */
  readonly serverName: string | undefined;
}

/** @throws WireError */
export function decodeCheckRequest(buffer: Buffer): AuthzRequest {
  const found: Mutable<AuthzRequest> = {
    method: "",
    path: "",
    authority: "",
    scheme: "",
    headers: [],
    body: EMPTY,
    serverName: undefined,
  };
  each(new Reader(buffer, 0, buffer.length), {
    // CheckRequest.attributes
    [field(1, 2)]: (attributes) =>
      each(attributes, {
        // AttributeContext.request -> Request.http
        [field(4, 2)]: (request) =>
          each(request, { [field(2, 2)]: (http) => readHttp(http, found) }),
        // AttributeContext.tls_session -> TLSSession.sni
        [field(12, 2)]: (session) => {
          found.serverName = "";
          each(session, { [field(1, 2)]: (sni) => (found.serverName = text(sni)) });
        },
      }),
  });
  return found;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

const EMPTY = Buffer.alloc(0);

/**
 * AttributeContext.HttpRequest: method = 2, path = 4, host = 5, scheme = 6, body = 11, raw_body =
 * 12, header_map = 13.
 */
function readHttp(reader: Reader, found: Mutable<AuthzRequest>): void {
  const headers: [string, string][] = [];
  each(reader, {
    [field(2, 2)]: (value) => (found.method = text(value)),
    [field(4, 2)]: (value) => (found.path = text(value)),
    [field(5, 2)]: (value) => (found.authority = text(value)),
    [field(6, 2)]: (value) => (found.scheme = text(value)),
    [field(12, 2)]: (value) => (found.body = value.buffer.subarray(value.at, value.end)),
    [field(13, 2)]: (map) => each(map, { [field(1, 2)]: (header) => readHeader(header, headers) }),
  });
  found.headers = headers;
}

/** HeaderValue: key = 1, value = 2, raw_value = 3. */
function readHeader(reader: Reader, headers: [string, string][]): void {
  let name = "";
  let value = "";
  each(reader, {
    [field(1, 2)]: (key) => (name = text(key)),
    [field(2, 2)]: (plain) => (value = text(plain)),
    [field(3, 2)]: (raw) => (value = raw.buffer.toString("latin1", raw.at, raw.end)),
  });
  if (!name.startsWith(":")) headers.push([name, value]);
}

/**
 * Decodes one byte per character: non-ASCII bytes stay visible, and nothing is decoded that Envoy
 * did not decode.
 */
function text(reader: Reader): string {
  return reader.buffer.toString("latin1", reader.at, reader.end);
}

/** Calls the handler of each length-delimited field; others are skipped. */
function each(
  reader: Reader,
  handlers: Readonly<Record<number, (field: Reader) => unknown>>,
): void {
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    const handler = handlers[tag];
    if (handler === undefined) {
      reader.skip(tag);
      continue;
    }
    const start = reader.span();
    handler(new Reader(reader.buffer, start, reader.at));
  }
}

export type AuthzReply =
  | {
      readonly kind: "ok";
      readonly set: readonly (readonly [name: string, value: string])[];
      readonly remove: readonly string[];
      readonly setQuery: readonly (readonly [name: string, value: string])[];
      readonly removeQuery: readonly string[];
      /** Metadata for later filters and the access log: texts by name. */
      readonly metadata: Readonly<Record<string, string>>;
    }
  | {
      readonly kind: "denied";
      readonly status: number;
      readonly headers: readonly (readonly [name: string, value: string])[];
      readonly body: string;
      readonly metadata: Readonly<Record<string, string>>;
    };

const PERMISSION_DENIED = 7;

/**
 * CheckResponse: status = 1, denied_response = 2, ok_response = 3, dynamic_metadata = 4.
 * @param room bytes left free before it
 */
export function encodeCheckResponse(reply: AuthzReply, room = 0): Buffer {
  const head = Buffer.allocUnsafe(room);
  const metadata = bytes(4, structOf(reply.metadata));
  if (reply.kind === "denied") {
    const denied = Buffer.concat([
      bytes(1, varintField(1, reply.status)),
      ...reply.headers.map((header) => bytes(2, headerOption(header))),
      bytes(3, Buffer.from(reply.body)),
    ]);
    return Buffer.concat([
      head,
      bytes(1, varintField(1, PERMISSION_DENIED)),
      bytes(2, denied),
      metadata,
    ]);
  }
  const ok = Buffer.concat([
    ...reply.set.map((header) => bytes(2, headerOption(header))),
    ...reply.remove.map((name) => bytes(5, Buffer.from(name))),
    ...reply.setQuery.map(([key, value]) =>
      bytes(7, Buffer.concat([bytes(1, Buffer.from(key)), bytes(2, Buffer.from(value))])),
    ),
    ...reply.removeQuery.map((name) => bytes(8, Buffer.from(name))),
  ]);
  return Buffer.concat([head, bytes(1, EMPTY), bytes(3, ok), metadata]);
}

/** HeaderValueOption: header = 1, append_action = 3 (OVERWRITE_IF_EXISTS_OR_ADD). */
function headerOption([name, value]: readonly [string, string]): Buffer {
  const header = Buffer.concat([bytes(1, Buffer.from(name)), bytes(2, Buffer.from(value))]);
  return Buffer.concat([bytes(1, header), varintField(3, 2)]);
}

/** Struct: fields = 1, map of Value; Value: string_value = 3. */
function structOf(values: Readonly<Record<string, string>>): Buffer {
  const entries = Object.entries(values).map(([key, value]) =>
    bytes(1, Buffer.concat([bytes(1, Buffer.from(key)), bytes(2, bytes(3, Buffer.from(value)))])),
  );
  return Buffer.concat(entries);
}

/** A length-delimited field. */
export function bytes(number: number, payload: Buffer): Buffer {
  return Buffer.concat([varint((number << 3) | 2), varint(payload.length), payload]);
}

function varintField(number: number, value: number): Buffer {
  return Buffer.concat([varint(number << 3), varint(value)]);
}

function varint(value: number): Buffer {
  const out: number[] = [];
  let rest = value;
  while (rest >= 128) {
    out.push((rest % 128) | 0x80);
    rest = Math.floor(rest / 128);
  }
  return Buffer.from([...out, rest]);
}
