/** Records of the audit chain, and the time at which an answer may end. */
import { describe, expect, test } from "vitest";
import { hashKey } from "../../access/credentials.ts";
import { REFUSAL_LIMITS, REFUSALS_LEFT_OUT } from "../../audit/refusals/refusals.ts";
import { clientText } from "../../platform/client-text.ts";
import { accessKey, EXTERNAL, Gateway, provider, TOKEN, type Trip } from "../testing.ts";
import { ANSWERS, chat, EVENT_STREAM, STREAMS } from "../testing-samples.ts";

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

describe("a client's own text is stored in its bounded form", () => {
  const model = `m-${"x".repeat(50_000)}\u001b[2J`;

  test("in LLM_CALL, the log and the labels of metrics", async () => {
    const shared = gateway();
    // The longest accepted name; its provider's name makes it longer.
    const longest = `openai/${"m".repeat(249)}`;
    const trip = shared.trip().request({ body: chat(longest) });
    trip.call().reportFailure(1, { status: 429, retryAfterMs: undefined, flags: "" });
    trip.call().begin({ provider: provider("anthropic"), model });
    trip.responseHeaders(200).responseBody(ANSWERS.anthropic);
    const asked = clientText(longest);
    expect(shared.audit.ofType("LLM_CALL")[0]).toMatchObject({
      asked,
      model: clientText(model),
      attempts: [{ model: "m".repeat(249) }, { model: clientText(model) }],
    });
    expect(JSON.stringify(shared.audit.events).length).toBeLessThan(4_000);
    const line = shared.log.find(({ msg }) => msg === "llm call");
    expect(line).toMatchObject({ asked, model: clientText(`anthropic/${model}`) });
    expect(JSON.stringify(line).length).toBeLessThan(4_000);
    const text = await shared.registry.metrics();
    expect(text).toContain(clientText(model).replaceAll("\\", "\\\\"));
    for (const each of text.split("\n")) expect(each.length).toBeLessThan(1_500);
  });

  test("in LLM_REFUSED", () => {
    const shared = gateway();
    const path = `/v1beta/models/${"%0a".repeat(10_000)}:generateContent`;
    shared.trip().requestHeaders({ path, headers: { authorization: "Bearer nobody" } });
    shared.trip().request({ body: chat(`gone/${model}`) });
    const [first] = shared.audit.ofType("LLM_REFUSED");
    expect(first).toMatchObject({
      path: clientText(path),
      asked: clientText("\n".repeat(10_000)),
    });
    expect(shared.audit.events).toHaveLength(2);
    for (const event of shared.audit.events)
      expect(JSON.stringify(event).length).toBeLessThan(1_500);
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

  test("but a refusal, which waits for no disk", () => {
    const shared = gateway();
    shared.audit.hold = true;
    const trip = shared.trip().request({ body: chat("gone/m") });
    expect(trip.exchange.responded.status).toBe(404);
    expect(shared.audit.ofType("LLM_REFUSED")).toHaveLength(1);
    expect(shared.audit.awaited).toBe(0);
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
    shared.trip().requestHeaders({
      path: "/v1beta/models/m:generateContent?key=sk-tried-1",
      headers: { authorization: "Bearer sk-tried-2" },
    });
    shared.trip().requestHeaders({
      path: "/v1beta/models/m:generateContent?key=sk-tried-1",
      headers: { authorization: "" },
    });
    expect(shared.audit.ofType("LLM_REFUSED")).toHaveLength(2);
    expect(JSON.stringify(shared.audit.events)).not.toContain("sk-tried");
  });

  const { caller, total, summaryMs } = REFUSAL_LIMITS;

  const knock = (shared: Gateway, times: number): void => {
    for (let i = 0; i < times; i += 1) {
      const trip = shared.trip().requestHeaders({ headers: { authorization: "Bearer nobody" } });
      expect(trip.exchange.responded.status).toBe(401);
    }
  };

  test("callers that nobody knows cannot fill the disk: the rest of many is one record", async () => {
    const shared = gateway();
    knock(shared, caller.burst + 30);
    expect(shared.audit.events).toHaveLength(caller.burst);
    await shared.clock.advanceAndSettle(summaryMs);
    expect(shared.audit.events.at(-1)).toMatchObject({
      type: REFUSALS_LEFT_OUT,
      fields: {
        of: "LLM_REFUSED",
        count: 30,
        callers: { anonymous: 30 },
        codes: { invalid_key: 30 },
      },
    });
    knock(shared, 1);
    expect(shared.audit.events).toHaveLength(caller.burst + 2);
  });

  test("nor can a caller that is known; what it completes is on record, call by call", () => {
    const shared = gateway();
    for (let i = 0; i < caller.burst + 30; i += 1) shared.trip().request({ body: chat("gone/m") });
    expect(shared.audit.ofType("LLM_REFUSED")).toHaveLength(caller.burst);
    for (let i = 0; i < total.burst + caller.burst; i += 1)
      shared.trip().request().responseHeaders(200).responseBody(ANSWERS.openai);
    expect(shared.audit.ofType("LLM_CALL")).toHaveLength(total.burst + caller.burst);
  });

  test("nor can holders of revoked keys, each told apart from the other of its name", async () => {
    const open = provider("openai", { external: EXTERNAL });
    const shared = new Gateway(open);
    const keys = ["one", "two"].map((namespace) =>
      accessKey(open, { namespace, revoked: true, workload: "ext:laptop" }),
    );
    shared.policy = {
      ...shared.policy,
      keysByHash: new Map(
        keys.map((key) => [hashKey(`svc_${key.namespace}`), { key, graceUntil: undefined }]),
      ),
    };
    for (let i = 0; i < caller.burst + 7; i += 1)
      for (const { namespace } of keys)
        shared.trip().requestHeaders({
          path: "/ext/v1/chat/completions",
          headers: { authorization: `Bearer svc_${namespace}` },
        });
    expect(shared.audit.ofType("LLM_REFUSED")).toHaveLength(2 * caller.burst);
    await shared.refusals.close();
    expect(shared.audit.ofType(REFUSALS_LEFT_OUT)).toMatchObject([
      { callers: { "ext:one/laptop": 7, "ext:two/laptop": 7 }, codes: { key_revoked: 14 } },
    ]);
  });

  test("what is refused because the chain cannot be written is counted, not lost", async () => {
    const shared = gateway();
    shared.audit.refusing = true;
    shared.audit.state = "failing";
    for (let i = 0; i < 5; i += 1) shared.trip().request();
    expect(shared.audit.events).toEqual([]);
    shared.audit.state = "ok";
    await shared.clock.advanceAndSettle(summaryMs);
    expect(shared.audit.ofType(REFUSALS_LEFT_OUT)).toMatchObject([
      { codes: { audit_unavailable: 5 }, reasons: { failure: 5 } },
    ]);
  });
});
