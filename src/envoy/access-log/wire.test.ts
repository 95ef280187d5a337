import path from "node:path";
import { expect, test } from "vitest";
import { ProtoRegistry } from "../protobuf/registry.ts";
import { decodeLogEntries } from "./wire.ts";

const protos = ProtoRegistry.load(path.join(import.meta.dirname, "../../gen/envoy.binpb"));
const MESSAGE = "envoy.service.accesslog.v3.StreamAccessLogsMessage";
const WHERE = { filter: "envoy.filters.http.ext_authz", key: "call" };

function decode(...logEntry: object[]): ReturnType<typeof decodeLogEntries> {
  const message = {
    identifier: { node: { id: "n", metadata: { call: "not-this" } }, logName: "ended" },
    httpLogs: { logEntry },
  };
  return decodeLogEntries(Buffer.from(protos.encode(MESSAGE, message as never)), WHERE);
}

const ENTRY = {
  commonProperties: {
    sampleRate: 1,
    startTime: "2026-01-01T00:00:00.5Z",
    upstreamCluster: "service",
    metadata: {
      filterMetadata: {
        other: { call: "no" },
        [WHERE.filter]: { upstream: "192.0.2.1:443", call: "id-1", n: 3 },
      },
    },
  },
  protocolVersion: "HTTP11",
  request: { requestMethod: "POST", path: "/x", requestBodyBytes: "5000000000" },
  response: { responseCode: 200, responseHeadersBytes: "77", responseBodyBytes: "11" },
};

test("an entry is read as Envoy's own definitions have it", () => {
  const { response: _, ...unanswered } = ENTRY;
  expect(decode(ENTRY, unanswered)).toEqual([
    { call: "id-1", status: 200, requestBytes: 5_000_000_000, responseBytes: 11, flags: [] },
    { call: "id-1", status: 0, requestBytes: 5_000_000_000, responseBytes: 0, flags: [] },
  ]);
});

test("what did not leave has no name", () => {
  expect(
    decode({
      ...ENTRY,
      commonProperties: {
        metadata: { filterMetadata: { [WHERE.filter]: { upstream: "a" }, other: { call: "no" } } },
      },
    })[0]?.call,
  ).toBeUndefined();
  expect(decode({})).toEqual([
    { call: undefined, status: 0, requestBytes: 0, responseBytes: 0, flags: [] },
  ]);
});

test("every response flag has its name", () => {
  const names = protos.decodeToJson(
    "envoy.data.accesslog.v3.ResponseFlags",
    Buffer.from(
      Array.from({ length: 28 }, (_, i) => i + 1)
        .filter((n) => n !== 13)
        .flatMap((n) => (n < 16 ? [n << 3, 1] : [((n << 3) & 0x7f) | 0x80, n >> 4, 1])),
    ),
  );
  const flags = {
    ...(names as Record<string, unknown>),
    unauthorizedDetails: { reason: "EXTERNAL_SERVICE" },
  };
  const expected = Object.keys(flags);
  expect(expected).toHaveLength(28);
  expect(
    decode({ ...ENTRY, commonProperties: { responseFlags: flags } })[0]?.flags.toSorted(),
  ).toEqual(expected.toSorted());
});

test("what is cut is an error", () => {
  const whole = Buffer.from(protos.encode(MESSAGE, { httpLogs: { logEntry: [ENTRY] } }));
  expect(() => decodeLogEntries(whole.subarray(0, whole.length - 3), WHERE)).toThrow(
    "beyond the end",
  );
});
