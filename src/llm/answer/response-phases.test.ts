/** What Envoy is told at each phase of an answer, and what the call knows then. */
import { describe, expect, test, vi } from "vitest";
import { Gateway, provider, type Trip } from "../testing.ts";
import { ANSWERS, chat, EVENT_STREAM, STREAMS } from "../testing-samples.ts";

const JSON_TYPE = { "content-type": "application/json" };
const IDENTITY = [
  ["x-svc-call-id", "call-1"],
  ["x-svc-model-id", "openai/m"],
  ["x-svc-retries", "0"],
];

function asked(more: object = {}): { readonly shared: Gateway; readonly trip: Trip } {
  const shared = new Gateway(provider("openai"));
  return { shared, trip: shared.trip().request({ body: chat("openai/m", more) }) };
}

const streamed = () => asked({ stream: true, stream_options: { include_usage: true } });

const code = (trip: Trip): unknown =>
  (JSON.parse(trip.exchange.responded.body) as { error: { code: unknown } }).error.code;

describe("headers", () => {
  test("of a whole answer are sent on when its body is known", () => {
    const { trip } = asked();
    trip.responseHeaders(200, { ...JSON_TYPE });
    expect(trip.exchange.last).toEqual({
      kind: "proceed",
      phase: "response_headers",
      reply: { responseBodyMode: "buffered" },
    });
  });

  test("of the gateway's own names do not come from a provider", () => {
    const forged = { "x-svc-cost-usd": "0", "x-other": "1", "x-svc-retries": "9" };
    const whole = asked().trip.responseHeaders(200, { ...JSON_TYPE, ...forged });
    expect(whole.exchange.proceeded.headers).toEqual({
      remove: ["x-svc-cost-usd", "x-svc-retries"],
    });
    const error = asked().trip.responseHeaders(500, { ...JSON_TYPE, ...forged });
    expect(error.exchange.proceeded).toEqual({
      headers: { remove: ["x-svc-cost-usd", "x-svc-retries"] },
      responseBodyMode: "buffered",
    });
    const stream = streamed().trip.responseHeaders(200, { ...EVENT_STREAM, ...forged });
    expect(stream.exchange.last).toMatchObject({
      phase: "response_headers",
      reply: {
        headers: {
          set: IDENTITY,
          remove: ["x-svc-cost-usd", "x-svc-retries", "content-length"],
        },
        responseBodyMode: "streamed",
      },
    });
  });

  test.each([
    ["text/event-stream", undefined, true],
    ["Text/Event-Stream; charset=utf-8", "identity", true],
    ["text/event-stream", "IDENTITY", true],
    ["text/event-stream", "gzip", false],
    ["application/json", undefined, false],
    ["x text/event-stream", undefined, false],
  ])("a stream of %s in %s is one: %s", (type, encoding, isStream) => {
    const { trip } = streamed();
    trip.responseHeaders(200, {
      "content-type": type,
      ...(encoding === undefined ? {} : { "content-encoding": encoding }),
    });
    expect(trip.exchange.last.kind).toBe(isStream ? "proceed" : "respond");
    if (!isStream) expect(code(trip)).toBe("upstream_invalid");
  });

  test("without a content type are those of a whole answer", () => {
    const { trip } = asked();
    expect(trip.responseHeaders(200, {}).exchange.proceeded.responseBodyMode).toBe("buffered");
  });

  test("begin what the provider bills, and release the request's body", async () => {
    const { shared, trip } = streamed();
    const call = trip.call();
    shared.clock.advance(30);
    expect(call.answer).toMatchObject({ begun: false, firstByteAt: undefined });
    trip.responseHeaders(200, EVENT_STREAM);
    expect(call.answer).toMatchObject({
      begun: true,
      firstByteAt: call.request.startedAt + 30,
      streaming: true,
      receivedWhole: false,
    });
    expect(call.original).toBeUndefined();
    expect(await shared.bytesInFlight()).toBe(0);
  });

  test.each([400, 500])("of an error begin nothing: %i", (status) => {
    const { shared, trip } = asked();
    const call = trip.call();
    trip.responseHeaders(status, JSON_TYPE).responseBody({ error: { message: "No." } });
    expect(shared.log).toMatchObject([{ status, end: "failed", code: "upstream_error" }]);
    expect(call.answer).toMatchObject({ begun: false, firstByteAt: undefined });
  });

  test("of an answer that is empty end it with an error, billed as what it may have cost", () => {
    const { shared, trip } = asked({ max_tokens: 50 });
    trip.responseHeaders(200, JSON_TYPE, true);
    expect([trip.exchange.responded.status, code(trip)]).toEqual([502, "upstream_invalid"]);
    expect(shared.log).toMatchObject([{ status: 502, end: "failed", code: "upstream_invalid" }]);
    expect(shared.calls.size).toBe(0);
  });

  test("of an error that is empty end it with that status", () => {
    const { shared, trip } = asked();
    trip.responseHeaders(404, {}, true);
    const { status, headers } = trip.exchange.responded;
    expect(status).toBe(404);
    expect([...headers].slice(0, 3)).toEqual(IDENTITY);
    expect(headers.get("content-type")).toBe("application/json");
    expect(headers.has("x-svc-duration-ms")).toBe(true);
    expect(shared.log).toMatchObject([{ status: 404, end: "failed", code: "upstream_error" }]);
  });

  test("after the end pass", () => {
    const { trip } = asked();
    trip.responseHeaders(200, JSON_TYPE).responseBody(ANSWERS.openai);
    trip.responseHeaders(200, JSON_TYPE);
    expect(trip.exchange.last).toEqual({ kind: "pass", phase: "response_headers" });
    trip.responseBody("more");
    expect(trip.exchange.last).toEqual({ kind: "pass", phase: "response_body" });
  });
});

describe("an error that was decided before", () => {
  test.each([
    [1_500, "2"],
    [undefined, undefined],
  ])("is sent with its wait of %s ms", (retryAfterMs, seconds) => {
    const { shared, trip } = asked();
    const error = { status: 429, code: "upstream_rate_limited", message: "Wait." };
    trip.call().plannedError = { error, retryAfterMs };
    trip.responseHeaders(421, {}, true);
    const { status, headers } = trip.exchange.responded;
    expect([status, code(trip), headers.get("retry-after")]).toEqual([429, error.code, seconds]);
    expect([...headers].slice(0, 3)).toEqual(IDENTITY);
    expect(shared.log).toMatchObject([{ end: "failed", code: error.code }]);
  });
});

describe("the body", () => {
  test("before its headers passes", () => {
    const { shared, trip } = asked();
    expect(trip.responseBody("x").exchange.last).toEqual({ kind: "pass", phase: "response_body" });
    expect([shared.log, shared.calls.size]).toEqual([[], 1]);
  });

  test("of a whole answer that passes is not sent again", () => {
    const { shared, trip } = asked();
    const call = trip.call();
    const body = Buffer.from(JSON.stringify(ANSWERS.openai));
    trip.responseHeaders(200, JSON_TYPE).responseBody(body);
    expect(trip.exchange.last).toMatchObject({ kind: "proceed", phase: "response_body" });
    expect(Object.keys(trip.exchange.proceeded)).toEqual(["headers"]);
    expect(Object.keys(trip.exchange.proceeded.headers ?? {})).toEqual(["set"]);
    expect(call.answer).toMatchObject({ receivedWhole: true, bytes: body.length });
    expect(shared.log).toMatchObject([{ status: 200, end: "completed" }]);
    expect(shared.log[0]?.["code"]).toBeUndefined();
  });

  test("of an error is replaced as a whole", () => {
    const { trip } = asked();
    trip.responseHeaders(500, { ...JSON_TYPE, "content-encoding": "gzip" });
    trip.responseBody("not gzip");
    const { headers, body } = trip.exchange.proceeded;
    expect(headers?.remove).toEqual(["content-encoding"]);
    expect(headers?.set?.slice(0, 3)).toEqual(IDENTITY);
    expect(headers?.set?.slice(-2)).toEqual([
      ["content-type", "application/json"],
      ["content-length", String(body?.length)],
    ]);
  });

  test("of a stream notes its progress, and its first content once", () => {
    const { shared, trip } = streamed();
    const { answer } = trip.responseHeaders(200, EVENT_STREAM).call();
    const times: (number | undefined)[][] = [];
    const start = shared.clock.monotonic();
    for (const part of STREAMS.openai.slice(0, 3)) {
      shared.clock.advance(10);
      trip.responseBody(part, false);
      times.push([answer.lastProgressAt, answer.firstContentAt].map((at) => at && at - start));
    }
    expect(times).toEqual([
      [10, undefined],
      [20, 20],
      [30, 20],
    ]);
  });

  test.each<[string, readonly string[], object]>([
    ["that is complete", STREAMS.openai, { end: "completed", usage: "exact" }],
    [
      "that ends early",
      STREAMS.openai.slice(0, 3),
      { end: "cut", code: "stream_interrupted", usage: "estimated" },
    ],
    [
      "with an error",
      [...STREAMS.openai.slice(0, 3), 'data: {"error":{"message":"x"}}\n\n'],
      { end: "cut", code: "upstream_error", usage: "estimated" },
    ],
  ])("of a stream %s", (_name, parts, line) => {
    const { shared, trip } = streamed();
    trip.responseHeaders(200, EVENT_STREAM);
    for (const part of parts) trip.responseBody(part, false);
    trip.responseBody("", true);
    expect(trip.exchange.last).toMatchObject({ kind: "proceed", phase: "response_body" });
    expect(shared.log).toMatchObject([{ status: 200, ...line }]);
    expect(shared.calls.size).toBe(0);
  });
});

describe("a client that leaves", () => {
  test.each<[string, (trip: Trip) => void, number]>([
    ["before any answer", () => undefined, 499],
    ["before the body", (trip) => void trip.responseHeaders(200, JSON_TYPE), 200],
  ])("%s is recorded with the status that it saw", (_name, before, status) => {
    const { shared, trip } = asked();
    before(trip);
    trip.closed().closed();
    expect(shared.log).toMatchObject([{ status, end: "disconnected" }]);
    expect([shared.calls.size, shared.defects]).toEqual([0, []]);
  });

  test("once its usage is known is billed that, and nobody reads the rest", () => {
    const claim = vi.fn<() => boolean>(() => true);
    const shared = new Gateway(provider("openai"));
    shared.relay = { claim };
    const trip = shared.trip().request({ body: chat("openai/m", { stream: true }) });
    trip.responseHeaders(200, EVENT_STREAM);
    for (const part of STREAMS.openai.slice(0, -1)) trip.responseBody(part, false);
    trip.closed();
    expect(claim).not.toHaveBeenCalled();
    expect(shared.log).toMatchObject([{ usage: "exact", end: "disconnected", outputTokens: 7 }]);
  });

  test("in the middle of a stream is billed for what it was sent", () => {
    const { shared, trip } = streamed();
    const call = trip.responseHeaders(200, EVENT_STREAM).call();
    for (const part of STREAMS.openai.slice(0, 3)) trip.responseBody(part, false);
    trip.closed();
    expect(call.answer.events).toBeGreaterThan(0);
    expect(call.answer.bytes).toBe("the-answer".length);
    expect(shared.log).toMatchObject([{ usage: "estimated", end: "disconnected" }]);
  });
});
