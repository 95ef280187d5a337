/**
 * Encodes and decodes ext_authz messages by hand, because there is one of each per request and few
 * fields are used. Field numbers are those of
 * envoy/service/auth/v3/{external_auth,attribute_context}.proto, envoy/config/core/v3/base.proto,
 * google/rpc/status.proto and google/protobuf/struct.proto.
 */
import { dispatch, field, Reader } from "../protobuf/reader.ts";
import { bytesField, varintField } from "../protobuf/writer.ts";

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
  dispatch(new Reader(buffer, 0, buffer.length), {
    // CheckRequest.attributes
    [field(1, 2)]: (attributes) =>
      dispatch(attributes, {
        // AttributeContext.request -> Request.http
        [field(4, 2)]: (request) =>
          dispatch(request, { [field(2, 2)]: (http) => readHttp(http, found) }),
        // AttributeContext.tls_session -> TLSSession.sni
        [field(12, 2)]: (session) => {
          found.serverName = "";
          dispatch(session, { [field(1, 2)]: (sni) => (found.serverName = text(sni)) });
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
  dispatch(reader, {
    [field(2, 2)]: (value) => (found.method = text(value)),
    [field(4, 2)]: (value) => (found.path = text(value)),
    [field(5, 2)]: (value) => (found.authority = text(value)),
    [field(6, 2)]: (value) => (found.scheme = text(value)),
    [field(12, 2)]: (value) => (found.body = value.buffer.subarray(value.at, value.end)),
    [field(13, 2)]: (map) =>
      dispatch(map, { [field(1, 2)]: (header) => readHeader(header, headers) }),
  });
  found.headers = headers;
}

/** HeaderValue: key = 1, value = 2, raw_value = 3. */
function readHeader(reader: Reader, headers: [string, string][]): void {
  let name = "";
  let value = "";
  dispatch(reader, {
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
  const metadata = bytesField(4, structOf(reply.metadata));
  if (reply.kind === "denied") {
    const denied = Buffer.concat([
      bytesField(1, varintField(1, reply.status)),
      ...reply.headers.map((header) => bytesField(2, headerOption(header))),
      bytesField(3, Buffer.from(reply.body)),
    ]);
    return Buffer.concat([
      head,
      bytesField(1, varintField(1, PERMISSION_DENIED)),
      bytesField(2, denied),
      metadata,
    ]);
  }
  const ok = Buffer.concat([
    ...reply.set.map((header) => bytesField(2, headerOption(header))),
    ...reply.remove.map((name) => bytesField(5, Buffer.from(name))),
    ...reply.setQuery.map(([key, value]) =>
      bytesField(
        7,
        Buffer.concat([bytesField(1, Buffer.from(key)), bytesField(2, Buffer.from(value))]),
      ),
    ),
    ...reply.removeQuery.map((name) => bytesField(8, Buffer.from(name))),
  ]);
  return Buffer.concat([head, bytesField(1, EMPTY), bytesField(3, ok), metadata]);
}

/** HeaderValueOption: header = 1, append_action = 3 (OVERWRITE_IF_EXISTS_OR_ADD). */
function headerOption([name, value]: readonly [string, string]): Buffer {
  const header = Buffer.concat([
    bytesField(1, Buffer.from(name)),
    bytesField(2, Buffer.from(value)),
  ]);
  return Buffer.concat([bytesField(1, header), varintField(3, 2)]);
}

/** Struct: fields = 1, map of Value; Value: string_value = 3. */
function structOf(values: Readonly<Record<string, string>>): Buffer {
  const entries = Object.entries(values).map(([key, value]) =>
    bytesField(
      1,
      Buffer.concat([
        bytesField(1, Buffer.from(key)),
        bytesField(2, bytesField(3, Buffer.from(value))),
      ]),
    ),
  );
  return Buffer.concat(entries);
}
