/**
 * Decodes Envoy's access log entries by hand: there is one for each call, and few fields are used.
 * Field numbers are those of envoy/service/accesslog/v3/als.proto,
 * envoy/data/accesslog/v3/accesslog.proto, envoy/config/core/v3/base.proto and
 * google/protobuf/struct.proto.
 */
import { field, Reader, walk } from "../protobuf/reader.ts";

export interface LogEntry {
  /** A text of the filter's dynamic metadata; undefined if it set none. */
  readonly call: string | undefined;
  /** HTTP status; 0 if there was no response. */
  readonly status: number;
  readonly requestBytes: number;
  readonly responseBytes: number;
  /** Names of `ResponseFlags`, as in protobuf's JSON. */
  readonly flags: readonly string[];
}

/** Location of the call's id: `filter_metadata[filter][key]`. */
export interface CallKey {
  readonly filter: string;
  readonly key: string;
}

/**
 * Decodes the entries of one StreamAccessLogsMessage: http_logs = 2, with log_entry = 1.
 * @throws WireError
 */
export function decodeLogEntries(buffer: Buffer, where: CallKey): readonly LogEntry[] {
  const entries: LogEntry[] = [];
  walk(new Reader(buffer, 0, buffer.length), (tag, logs) => {
    if (tag === field(2, 2))
      walk(logs, (inner, entry) => inner === field(1, 2) && entries.push(readEntry(entry, where)));
  });
  return entries;
}

/**
 * HTTPAccessLogEntry: common_properties = 1, request = 3 (request_body_bytes = 12), response = 4.
 */
function readEntry(reader: Reader, where: CallKey): LogEntry {
  let common: ReturnType<typeof readCommon> = { call: undefined, flags: [] };
  let requestBytes = 0;
  let response = { status: 0, bytes: 0 };
  walk(reader, (tag, part) => {
    if (tag === field(1, 2)) common = readCommon(part, where);
    else if (tag === field(3, 2))
      walk(part, (inner, _, value) => inner === field(12, 0) && (requestBytes = value));
    else if (tag === field(4, 2)) response = readResponse(part);
  });
  return { ...common, requestBytes, status: response.status, responseBytes: response.bytes };
}

/** HTTPResponseProperties: response_code = 1 (UInt32Value: value = 1), response_body_bytes = 3. */
function readResponse(reader: Reader): { status: number; bytes: number } {
  const found = { status: 0, bytes: 0 };
  walk(reader, (tag, part, value) => {
    if (tag === field(1, 2))
      walk(part, (inner, _, code) => inner === field(1, 0) && (found.status = code));
    else if (tag === field(3, 0)) found.bytes = value;
  });
  return found;
}

/** AccessLogCommon: response_flags = 16, metadata = 17 (filter_metadata = 1, a map of Struct). */
function readCommon(reader: Reader, { filter, key }: CallKey): Pick<LogEntry, "call" | "flags"> {
  let call: string | undefined;
  const flags: string[] = [];
  walk(reader, (tag, part) => {
    if (tag === field(16, 2)) {
      walk(part, (flag, _, value) => {
        const isSet = flag === field(13, 2) || ((flag & 7) === 0 && value !== 0);
        const name = isSet ? RESPONSE_FLAGS[flag >> 3] : undefined;
        if (name !== undefined) flags.push(name);
      });
    } else if (tag === field(17, 2)) {
      // Struct: fields = 1, a map of Value, with string_value = 3.
      walk(part, (inner, entry) => {
        if (inner === field(1, 2))
          inMap(entry, filter, (struct) =>
            walk(
              struct,
              (at, member) =>
                at === field(1, 2) && inMap(member, key, (value) => (call = textOf(value))),
            ),
          );
      });
    }
  });
  return { call, flags };
}

/** A map's entry: key = 1, value = 2. Calls back if it has the requested key. */
function inMap(entry: Reader, key: string, found: (value: Reader) => void): void {
  let name = "";
  let value: Reader | undefined;
  walk(entry, (tag, part) => {
    if (tag === field(1, 2)) name = part.buffer.toString("utf8", part.at, part.end);
    else if (tag === field(2, 2)) value = part;
  });
  if (name === key && value !== undefined) found(value);
}

function textOf(value: Reader): string | undefined {
  let text: string | undefined;
  walk(
    value,
    (tag, part) => tag === field(3, 2) && (text = part.buffer.toString("utf8", part.at, part.end)),
  );
  return text;
}

/** Set for a request that the authorizer denied, or that could not be authorized. */
export const UNAUTHORIZED = "unauthorizedDetails";

/** Indexed by field number. Number 13 is a message: the reason why a request was unauthorized. */
const RESPONSE_FLAGS: readonly (string | undefined)[] = [
  undefined,
  "failedLocalHealthcheck",
  "noHealthyUpstream",
  "upstreamRequestTimeout",
  "localReset",
  "upstreamRemoteReset",
  "upstreamConnectionFailure",
  "upstreamConnectionTermination",
  "upstreamOverflow",
  "noRouteFound",
  "delayInjected",
  "faultInjected",
  "rateLimited",
  UNAUTHORIZED,
  "rateLimitServiceError",
  "downstreamConnectionTermination",
  "upstreamRetryLimitExceeded",
  "streamIdleTimeout",
  "invalidEnvoyRequestHeaders",
  "downstreamProtocolError",
  "upstreamMaxStreamDurationReached",
  "responseFromCacheFilter",
  "noFilterConfigFound",
  "durationTimeout",
  "upstreamProtocolError",
  "noClusterFound",
  "overloadManager",
  "dnsResolutionFailure",
  "downstreamRemoteReset",
];
