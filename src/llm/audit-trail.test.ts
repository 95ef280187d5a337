/** What the audit chain is told, and when an answer may end. */
import { describe, expect, test } from "vitest";
import { ANONYMOUS_RECORDS_PER_SECOND } from "./audit-trail.ts";
import { Gateway, provider, TOKEN, type Trip } from "./testing.ts";
import { ANSWERS, chat, EVENT_STREAM, STREAMS } from "./testing-samples.ts";

const gateway = (): Gateway => new Gateway(provider("openai"), provider("anthropic"));
const SECRETS = [TOKEN, "sk-secret-", "the-prompt", "the-answer"];

describe("LLM_CALL", () => {
  test("says who asked for what, who answered, and what it came to", () => {
    const shared = gateway();
    const trip = shared.trip().request({ headers: { "x-svc-peer": "::ffff:198.51.100.7" } });
    shared.clock.advance(250);
    trip.responseHeaders(200).responseBody(ANSWERS.openai);
    expect(shared.audit.events).toEqual([
      {
        type: "LLM_CALL",
        fields: {
          call: "call-1",
          workload: "default/tester",
          client_ip: "198.51.100.7",
          operation: "chat",
          dialect: "openai",
          stream: false,
          asked: "openai/m",
          provider: "openai",
          model: "m",
          status: 200,
          end: "completed",
          code: undefined,
          attempts: [{ provider: "openai", model: "m" }],
          usage: "exact",
          input_tokens: 100,
          cached_input_tokens: 20,
          output_tokens: 7,
          cost_usd: "0.00016",
          duration_ms: 250,
        },
      },
    ]);
  });

  const ends: readonly (readonly [string, boolean, (trip: Trip) => void, object])[] = [
    [
      "an error of the provider",
      false,
      (trip) => void trip.responseHeaders(500).responseBody({ error: { message: "x" } }),
      { status: 500, end: "failed", code: "upstream_error", usage: "none" },
    ],
    [
      "an error without a body",
      false,
      (trip) => void trip.responseHeaders(503, {}, true),
      { status: 503, end: "failed", usage: "none" },
    ],
    [
      "no provider reached",
      false,
      (trip) => void trip.responseHeaders(503, { "x-svc-local": "UF x" }),
      { status: 503, end: "failed", code: "upstream_unavailable" },
    ],
    [
      "an answer that is none",
      false,
      (trip) => void trip.responseHeaders(200).responseBody("?"),
      { end: "failed", code: "upstream_invalid", usage: "estimated" },
    ],
    [
      "a client that leaves before the answer",
      false,
      (trip) => void trip.closed(),
      { status: 499, end: "disconnected", usage: "estimated" },
    ],
    [
      "a stream that is cut",
      true,
      (trip) =>
        void trip.responseHeaders(200, EVENT_STREAM).responseBody(STREAMS.openai[1] ?? "", true),
      { end: "cut", code: "stream_interrupted", usage: "estimated" },
    ],
    [
      "a client that leaves a stream",
      true,
      (trip) =>
        void trip
          .responseHeaders(200, EVENT_STREAM)
          .responseBody(STREAMS.openai[1] ?? "", false)
          .closed(),
      { end: "disconnected", usage: "estimated" },
    ],
    [
      "a whole stream",
      true,
      (trip) => void trip.responseHeaders(200, EVENT_STREAM).responseBody(STREAMS.openai.join("")),
      { end: "completed", usage: "exact" },
    ],
  ];

  test.each(ends)("one for %s, without a word of it", (_name, stream, end, expected) => {
    const shared = gateway();
    const trip = shared.trip().request({ body: chat("openai/m", stream ? { stream } : {}) });
    end(trip);
    trip.closed();
    expect(shared.audit.ofType("LLM_CALL")).toMatchObject([expected]);
    for (const secret of SECRETS) expect(JSON.stringify(shared.audit.events)).not.toContain(secret);
  });

  test("every attempt", () => {
    const shared = gateway();
    const trip = shared.trip().request();
    trip.call().reportFailure(1, { status: 429, retryAfterMs: undefined, flags: "" });
    trip.call().begin({ provider: provider("anthropic"), model: "claude" });
    trip.responseHeaders(200).responseBody(ANSWERS.anthropic);
    expect(shared.audit.ofType("LLM_CALL")[0]).toMatchObject({
      provider: "anthropic",
      model: "claude",
      attempts: [
        { provider: "openai", model: "m", status: 429, flags: undefined },
        { provider: "anthropic", model: "claude" },
      ],
    });
  });
});

describe("nothing ends before it is on record", () => {
  const answers = (trip: Trip): number => trip.exchange.answers.length;

  test.each<[string, boolean, (trip: Trip) => Trip]>([
    ["a whole answer", false, (trip) => trip.responseHeaders(200).responseBody(ANSWERS.openai)],
    [
      "an error of the provider",
      false,
      (trip) => trip.responseHeaders(500).responseBody({ error: { message: "x" } }),
    ],
    ["an error of ours", false, (trip) => trip.responseHeaders(503, { "x-svc-local": "UF x" })],
    [
      "a stream",
      true,
      (trip) =>
        trip
          .responseHeaders(200, EVENT_STREAM)
          .responseBody(STREAMS.openai[1] ?? "", false)
          .responseBody(STREAMS.openai.slice(2).join("")),
    ],
  ])("%s", (_name, stream, end) => {
    const shared = gateway();
    const trip = shared.trip().request({ body: chat("openai/m", stream ? { stream } : {}) });
    shared.audit.hold = true;
    end(trip);
    const before = answers(trip);
    expect(shared.audit.ofType("LLM_CALL")).toHaveLength(1);
    shared.audit.release();
    expect(answers(trip)).toBe(before + 1);
    expect(["proceed", "respond"]).toContain(trip.exchange.last.kind);
  });

  test("the pieces of a stream before its last do not wait", () => {
    const shared = gateway();
    const trip = shared.trip().request({ body: chat("openai/m", { stream: true }) });
    shared.audit.hold = true;
    trip.responseHeaders(200, EVENT_STREAM);
    const before = answers(trip);
    trip.responseBody(STREAMS.openai[1] ?? "", false);
    expect(answers(trip)).toBe(before + 1);
  });

  test("a refusal", () => {
    const shared = gateway();
    shared.audit.hold = true;
    const trip = shared.trip().request({ body: chat("gone/m") });
    const before = answers(trip);
    shared.audit.release();
    expect(answers(trip)).toBe(before + 1);
    expect(trip.exchange.responded.status).toBe(404);
  });

  test("what cannot be recorded does not end well", () => {
    const shared = gateway();
    const trip = shared.trip().request();
    shared.audit.outcome = "failed";
    trip.responseHeaders(200).responseBody(ANSWERS.openai);
    expect(trip.exchange.last.kind).toBe("fail");
  });

  test("unless it was said that work goes on", () => {
    const shared = gateway();
    const trip = shared.trip().request();
    shared.audit.outcome = "lost";
    trip.responseHeaders(200).responseBody(ANSWERS.openai);
    expect(trip.exchange.last.kind).toBe("proceed");
  });

  test("while nothing can be recorded nothing begins", () => {
    const shared = gateway();
    shared.audit.refusing = true;
    const { status, body } = shared.trip().request().exchange.responded;
    expect([status, body]).toEqual([503, expect.stringContaining("audit_unavailable")]);
    expect(shared.calls.size).toBe(0);
  });
});

describe("LLM_REFUSED", () => {
  test("says who was refused what", () => {
    const shared = gateway();
    shared
      .trip()
      .request({ body: chat("secret-model"), headers: { "x-svc-peer": "198.51.100.7" } });
    expect(shared.audit.events).toEqual([
      {
        type: "LLM_REFUSED",
        fields: {
          workload: "default/tester",
          client_ip: "198.51.100.7",
          path: "/v1/chat/completions",
          asked: "secret-model",
          code: "model_not_allowed",
          status: 403,
        },
      },
    ]);
  });

  test("never the key that was tried, nor one in a query", () => {
    const shared = gateway();
    shared
      .trip()
      .requestHeaders({
        path: "/v1beta/models/m:generateContent?key=sk-tried-1",
        headers: { authorization: "Bearer sk-tried-2" },
      });
    shared
      .trip()
      .requestHeaders({
        path: "/v1beta/models/m:generateContent?key=sk-tried-1",
        headers: { authorization: "" },
      });
    expect(shared.audit.ofType("LLM_REFUSED")).toHaveLength(2);
    expect(JSON.stringify(shared.audit.events)).not.toContain("sk-tried");
  });

  test("callers nobody knows cannot fill the disk: of many in a second the rest is one record", () => {
    const shared = gateway();
    const knock = (times: number): void => {
      for (let i = 0; i < times; i += 1) {
        const trip = shared.trip().requestHeaders({ headers: { authorization: "Bearer nobody" } });
        expect(trip.exchange.responded.status).toBe(401);
      }
    };
    knock(ANONYMOUS_RECORDS_PER_SECOND + 30);
    expect(shared.audit.events).toHaveLength(ANONYMOUS_RECORDS_PER_SECOND);
    shared.clock.advance(1_000);
    expect(shared.audit.events.at(-1)).toEqual({
      type: "LLM_REFUSED",
      fields: { count: 30, codes: { invalid_key: 30 } },
    });
    knock(1);
    expect(shared.audit.events).toHaveLength(ANONYMOUS_RECORDS_PER_SECOND + 2);
  });

  test("callers that are known are each on record", () => {
    const shared = gateway();
    for (let i = 0; i < ANONYMOUS_RECORDS_PER_SECOND + 30; i += 1)
      shared.trip().request({ body: chat("gone/m") });
    expect(shared.audit.events).toHaveLength(ANONYMOUS_RECORDS_PER_SECOND + 30);
  });
});
