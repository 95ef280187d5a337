/**
 * Tests our hand-written codec against the definitions: encoded and decoded by reflection over
 * Envoy's own protos.
 */
import path from "node:path";
import type { JsonValue } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { ProtoRegistry } from "../protobuf/registry.ts";
import { MESSAGE_OFFSET } from "../grpc/connection.ts";
import { decodePhase } from "./decode.ts";
import { WireError } from "../protobuf/reader.ts";
import { encodeContinue, encodeImmediate, encodeUnchanged } from "./encode.ts";
import type { PhaseKind } from "./messages.ts";

const protos = ProtoRegistry.load(path.join(import.meta.dirname, "../../gen/envoy.binpb"));
const REQUEST = "envoy.service.ext_proc.v3.ProcessingRequest";
const RESPONSE = "envoy.service.ext_proc.v3.ProcessingResponse";

const base64 = (text: string): string => Buffer.from(text).toString("base64");
const request = (json: JsonValue) => decodePhase(Buffer.from(protos.encode(REQUEST, json)));
const response = (buffers: readonly Buffer[]) =>
  protos.decodeToJson(RESPONSE, Buffer.concat(buffers).subarray(MESSAGE_OFFSET));

describe("decodePhase", () => {
  test("headers, with raw and plain values, empty ones, and repeats joined", () => {
    const phase = request({
      requestHeaders: {
        headers: {
          headers: [
            { key: ":path", rawValue: base64("/v1/é") },
            { key: "x-plain", value: "plain" },
            { key: "x-empty", rawValue: "" },
            { key: "x-twice", rawValue: base64("a") },
            { key: "x-twice", rawValue: base64("b") },
            { key: "__proto__", rawValue: base64("p") },
          ],
        },
        endOfStream: true,
      },
      attributes: { "envoy.filters.http.ext_proc": { "request.id": "x" } },
    });
    expect(phase).toEqual({
      kind: "request_headers",
      endOfStream: true,
      headers: new Map([
        [":path", "/v1/é"],
        ["x-plain", "plain"],
        ["x-empty", ""],
        ["x-twice", "a, b"],
        ["__proto__", "p"],
      ]),
    });
  });

  test("bodies and trailers", () => {
    expect(request({ requestBody: { body: base64("{}"), endOfStream: true } })).toEqual({
      kind: "request_body",
      body: Buffer.from("{}"),
      endOfStream: true,
    });
    expect(request({ responseBody: {} })).toEqual({
      kind: "response_body",
      body: Buffer.alloc(0),
      endOfStream: false,
    });
    expect(request({ responseHeaders: {} })).toEqual({
      kind: "response_headers",
      headers: new Map(),
      endOfStream: false,
    });
    expect(request({ requestTrailers: {} })).toEqual({ kind: "request_trailers" });
    expect(request({ responseTrailers: {} })).toEqual({ kind: "response_trailers" });
  });

  test("anything that is not a whole message is an error, never a guess", () => {
    const whole = Buffer.from(
      protos.encode(REQUEST, {
        requestHeaders: { headers: { headers: [{ key: "a", rawValue: base64("b") }] } },
      }),
    );
    for (let cut = 0; cut < whole.length; cut++) {
      expect(() => decodePhase(whole.subarray(0, cut)), `cut at ${cut}`).toThrow(WireError);
    }
    expect(() =>
      decodePhase(Buffer.from([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff])),
    ).toThrow(WireError);
  });
});

describe("encode", () => {
  test("header changes, a body, a mode and a new route", () => {
    const long = "v".repeat(300);
    const bytes = encodeContinue("response_headers", {
      headers: {
        set: [
          ["x-a", "ä"],
          ["x-long", long],
          ["x-empty", ""],
        ],
        remove: ["cookie", "x-b"],
      },
      body: Buffer.from("body"),
      responseBodyMode: "buffered",
      clearRouteCache: true,
    });
    const appendAction = "OVERWRITE_IF_EXISTS_OR_ADD";
    expect(response(bytes)).toEqual({
      responseHeaders: {
        response: {
          headerMutation: {
            setHeaders: [
              { header: { key: "x-a", rawValue: base64("ä") }, appendAction },
              { header: { key: "x-long", rawValue: base64(long) }, appendAction },
              { header: { key: "x-empty" }, appendAction },
            ],
            removeHeaders: ["cookie", "x-b"],
          },
          bodyMutation: { body: base64("body") },
          clearRouteCache: true,
        },
      },
      modeOverride: {
        requestHeaderMode: "SEND",
        responseHeaderMode: "SEND",
        responseBodyMode: "BUFFERED",
      },
    });
  });

  test.each<[PhaseKind, string]>([
    ["request_headers", "requestHeaders"],
    ["request_body", "requestBody"],
    ["response_headers", "responseHeaders"],
    ["response_body", "responseBody"],
    ["request_trailers", "requestTrailers"],
    ["response_trailers", "responseTrailers"],
  ])("%s unchanged", (phase, field) => {
    expect(response(encodeUnchanged(phase))).toEqual({ [field]: {} });
  });

  test("a body that becomes empty is cleared, not left as it was", () => {
    expect(response(encodeContinue("response_body", { body: Buffer.alloc(0) }))).toEqual({
      responseBody: { response: { bodyMutation: { clearBody: true } } },
    });
  });

  test("a body that replaces what still comes, of 3 MiB", () => {
    const body = Buffer.alloc(3 * 1024 * 1024, 7);
    const bytes = encodeContinue("request_headers", { body, replaceAll: true });
    expect(response(bytes)).toEqual({
      requestHeaders: {
        response: {
          status: "CONTINUE_AND_REPLACE",
          bodyMutation: { body: body.toString("base64") },
        },
      },
    });
  });

  test("a body in pieces; large ones are not copied, and come last", () => {
    const pieces = [Buffer.alloc(5_000, 1), Buffer.alloc(0), Buffer.alloc(200, 2)];
    const buffers = encodeContinue("request_body", {
      headers: { set: [["content-length", "5200"]] },
      body: pieces,
      clearRouteCache: true,
      responseBodyMode: "streamed",
    });
    expect(buffers.slice(1)).toEqual(pieces);
    expect(buffers[1]).toBe(pieces[0]);
    expect(response(buffers)).toMatchObject({
      requestBody: {
        response: {
          bodyMutation: { body: Buffer.concat(pieces).toString("base64") },
          clearRouteCache: true,
        },
      },
      modeOverride: { responseBodyMode: "STREAMED" },
    });
    const small = encodeContinue("request_body", { body: [Buffer.from("a"), Buffer.from("b")] });
    expect(small).toHaveLength(1);
    expect(response(small)).toEqual({
      requestBody: { response: { bodyMutation: { body: base64("ab") } } },
    });
  });

  test("an immediate response", () => {
    const bytes = encodeImmediate({
      status: 429,
      headers: { set: [["retry-after", "3"]] },
      body: "no",
    });
    expect(response(bytes)).toEqual({
      immediateResponse: {
        status: { code: "TooManyRequests" },
        headers: {
          setHeaders: [
            {
              header: { key: "retry-after", rawValue: base64("3") },
              appendAction: "OVERWRITE_IF_EXISTS_OR_ADD",
            },
          ],
        },
        body: base64("no"),
        details: "svc",
      },
    });
  });
});
