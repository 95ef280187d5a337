/** Which headers of a request are sent on. */
import type http from "node:http";

/** Headers by lower-case name. */
export type HeaderTable = Readonly<Record<string, readonly string[]>>;

/** RFC 9110, section 7.6.1, and older ones. */
const HOP_BY_HOP: readonly string[] = [
  "connection",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
];

/**
 * Headers that describe one message, not its sender. The call id is among them: each request to the
 * gateway is a call of its own.
 */
const OF_ONE_MESSAGE: readonly string[] = [
  "accept",
  "accept-encoding",
  "content-encoding",
  "content-length",
  "content-type",
  "expect",
  "if-match",
  "if-modified-since",
  "if-none-match",
  "if-range",
  "if-unmodified-since",
  "last-event-id",
  "mcp-protocol-version",
  "mcp-session-id",
  "range",
  "x-request-id",
];

/** Headers of distributed tracing. */
const TRACE: readonly string[] = ["traceparent", "tracestate", "baggage"];

/** Returns the headers that identify the sender of a request: all but those of one message. */
export function senderHeaders(request: http.IncomingMessage): HeaderTable {
  return select(request, (name) => !OF_ONE_MESSAGE.includes(name) && !TRACE.includes(name));
}

/** Returns the headers by which a request is traced. */
export function traceHeaders(request: http.IncomingMessage): HeaderTable {
  return select(request, (name) => TRACE.includes(name));
}

/** Returns `headers` without those whose name begins with a prefix. */
export function withoutPrefix(headers: HeaderTable, prefix: string): HeaderTable {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !name.startsWith(prefix)));
}

function select(request: http.IncomingMessage, wanted: (name: string) => boolean): HeaderTable {
  const nominated = (request.headers.connection ?? "")
    .split(",")
    .map((name) => name.trim().toLowerCase());
  return Object.fromEntries(
    Object.entries(request.headersDistinct).flatMap(([name, values]) =>
      values === undefined || HOP_BY_HOP.includes(name) || nominated.includes(name) || !wanted(name)
        ? []
        : [[name, values]],
    ),
  );
}

/** Returns the only value of a header; undefined if it is absent or was sent more than once. */
export function onlyValue(request: http.IncomingMessage, name: string): string | undefined {
  const values = request.headersDistinct[name];
  return values?.length === 1 ? values[0] : undefined;
}

/** Returns the media type without its parameters, in lower case. */
export function mediaType(message: http.IncomingMessage): string {
  return (message.headers["content-type"] ?? "").split(";", 1)[0]?.trim().toLowerCase() ?? "";
}
