/**
 * Decodes a ProcessingRequest. Decoded by hand, because several messages arrive for each HTTP
 * request and only a few fields are used. Field numbers are those of
 * envoy/service/ext_proc/v3/external_processor.proto and envoy/config/core/v3/base.proto; unknown
 * fields are skipped.
 */
import type { HeaderMap, Phase } from "./messages.ts";
import { field, Reader, WireError } from "../protobuf/reader.ts";

const REQUEST_HEADERS = field(2, 2);
const RESPONSE_HEADERS = field(3, 2);
const REQUEST_BODY = field(4, 2);
const RESPONSE_BODY = field(5, 2);
const REQUEST_TRAILERS = field(6, 2);
const RESPONSE_TRAILERS = field(7, 2);

/** @throws WireError */
export function decodePhase(buffer: Buffer): Phase {
  const reader = new Reader(buffer, 0, buffer.length);
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    switch (tag) {
      case REQUEST_HEADERS:
      case RESPONSE_HEADERS: {
        const start = reader.span();
        return decodeHeaders(
          tag === REQUEST_HEADERS ? "request_headers" : "response_headers",
          new Reader(buffer, start, reader.at),
        );
      }
      case REQUEST_BODY:
      case RESPONSE_BODY: {
        const start = reader.span();
        return decodeBody(
          tag === REQUEST_BODY ? "request_body" : "response_body",
          new Reader(buffer, start, reader.at),
        );
      }
      case REQUEST_TRAILERS:
        return { kind: "request_trailers" };
      case RESPONSE_TRAILERS:
        return { kind: "response_trailers" };
      default:
        reader.skip(tag);
    }
  }
  throw new WireError("no phase in the message");
}

/** HttpHeaders: headers = 1 (HeaderMap), end_of_stream = 3. */
function decodeHeaders(kind: "request_headers" | "response_headers", reader: Reader): Phase {
  let headers: HeaderMap = new Map();
  let endOfStream = false;
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    if (tag === field(1, 2)) {
      const start = reader.span();
      headers = decodeHeaderMap(new Reader(reader.buffer, start, reader.at));
    } else if (tag === field(3, 0)) endOfStream = reader.varint() !== 0;
    else reader.skip(tag);
  }
  return { kind, headers, endOfStream };
}

/** HttpBody: body = 1, end_of_stream = 2. */
function decodeBody(kind: "request_body" | "response_body", reader: Reader): Phase {
  let body: Buffer = EMPTY;
  let endOfStream = false;
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    if (tag === field(1, 2)) {
      const start = reader.span();
      body = reader.buffer.subarray(start, reader.at);
    } else if (tag === field(2, 0)) endOfStream = reader.varint() !== 0;
    else reader.skip(tag);
  }
  return { kind, body, endOfStream };
}

const EMPTY = Buffer.alloc(0);

/** HeaderMap: headers = 1, repeated HeaderValue { key = 1, value = 2, raw_value = 3 }. */
function decodeHeaderMap(reader: Reader): HeaderMap {
  const headers = new Map<string, string>();
  const { buffer } = reader;
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    if (tag !== field(1, 2)) {
      reader.skip(tag);
      continue;
    }
    const start = reader.span();
    const entry = new Reader(buffer, start, reader.at);
    let key = "";
    let value = "";
    for (let inner = entry.tag(); inner !== 0; inner = entry.tag()) {
      if ((inner & 7) !== 2) {
        entry.skip(inner);
        continue;
      }
      const at = entry.span();
      if (inner === field(1, 2)) key = buffer.toString("latin1", at, entry.at);
      else if (inner === field(3, 2) || inner === field(2, 2)) {
        if (entry.at > at) value = buffer.toString("utf8", at, entry.at);
      }
    }
    const known = headers.get(key);
    headers.set(key, known === undefined ? value : `${known}, ${value}`);
  }
  return headers;
}
