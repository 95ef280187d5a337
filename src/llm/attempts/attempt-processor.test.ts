import { describe, expect, test, vi } from "vitest";
import { CREDENTIAL_HEADERS } from "../../access/credentials.ts";
import { PROVIDER_KINDS, type ProviderKind } from "../../policy/snapshot.ts";
import type { Failure } from "./retry-plan.ts";
import { settled } from "../../platform/testing.ts";
import { Gateway, provider, type RecordingExchange } from "../testing.ts";
import { ANSWERS, chat } from "../testing-samples.ts";

const failure = (status: number, retryAfterMs?: number, flags = ""): Failure => ({
  status,
  retryAfterMs,
  flags,
});
const retries = (attempts: number) => ({
  attempts,
  baseIntervalMs: 100,
  maxIntervalMs: 1_000,
  maxRetryAfterMs: 10_000,
});
const fallback = (name: string, model?: string) => ({ provider: `default/${name}`, model });

/** Jitter is half of its ceiling (the fake random): the first wait of a provider. */
const FIRST_WAIT_MS = 50;

const setOf = (exchange: RecordingExchange): Map<string, string> =>
  new Map(exchange.proceeded.headers?.set);

describe("an attempt after the first", () => {
  const gateway = (): Gateway => new Gateway(provider("openai", { retries: retries(3) }));

  test("waits for the report, then as long as the plan says", () => {
    const shared = gateway();
    const call = shared.trip().request().call();
    const { exchange } = shared.attempt("call-1");
    expect(exchange.answers).toEqual([]);
    call.reportSentFailure(failure(503));
    shared.clock.advance(FIRST_WAIT_MS - 1);
    expect(exchange.answers).toEqual([]);
    shared.clock.advance(1);
    expect(exchange.proceeded).toMatchObject({ replaceAll: true, clearRouteCache: true });
    expect(shared.clock.pending).toEqual([]);
    expect(call.attempts.map((attempt) => [attempt.target.provider.name, attempt.failure])).toEqual(
      [
        ["openai", failure(503)],
        ["openai", undefined],
      ],
    );
  });

  test("takes a report that came before it", () => {
    const shared = gateway();
    const call = shared.trip().request().call();
    call.reportSentFailure(failure(429, 2_000));
    const { exchange } = shared.attempt("call-1");
    shared.clock.advance(2_000 + FIRST_WAIT_MS - 1);
    expect(exchange.answers).toEqual([]);
    shared.clock.advance(1);
    expect(exchange.last.kind).toBe("proceed");
  });

  test("goes on when the report never comes, and answers once when it comes late", () => {
    const shared = gateway();
    const call = shared.trip().request().call();
    const { exchange } = shared.attempt("call-1");
    shared.clock.advance(249);
    expect(exchange.answers).toEqual([]);
    shared.clock.advance(1 + FIRST_WAIT_MS);
    expect(exchange.answers).toHaveLength(1);
    call.reportSentFailure(failure(500));
    shared.clock.advance(60_000);
    expect(exchange.answers).toHaveLength(1);
    expect(exchange.last.kind).toBe("proceed");
    expect(call.attempts[1]?.failure).toBeUndefined();
  });

  test("each further attempt takes the report of the one before", () => {
    const shared = gateway();
    const call = shared.trip().request().call();
    call.reportSentFailure(failure(500));
    shared.attempt("call-1");
    shared.clock.advance(FIRST_WAIT_MS);
    const { exchange } = shared.attempt("call-1");
    shared.clock.advance(200);
    expect(exchange.answers).toEqual([]);
    call.reportSentFailure(failure(503, 1_000));
    shared.clock.advance(1_000 + 2 * FIRST_WAIT_MS);
    expect(exchange.last.kind).toBe("proceed");
    expect(call.attempts.map((attempt) => attempt.failure?.status)).toEqual([500, 503, undefined]);
  });

  test("is charged to its caller, and forgets the parsed body when it is sent", () => {
    const shared = gateway();
    const call = shared.trip().request().call();
    const charge = vi.spyOn(shared.share, "charge");
    if (call.original === undefined) throw new Error("no body");
    const forget = vi.spyOn(call.original, "forgetValue");
    shared.attempt("call-1");
    expect(charge.mock.calls.map(([caller]) => caller)).toContain("default/tester");
    call.reportSentFailure(failure(503));
    shared.clock.advance(FIRST_WAIT_MS);
    expect(forget).toHaveBeenCalledOnce();
  });

  test("has the caller's whole body, even if nothing in it is changed", () => {
    const shared = new Gateway(provider("gemini", { retries: retries(2) }));
    const path = "/v1beta/models/gemini%2Fm:generateContent";
    const body = '{ "contents": [] }';
    const call = shared.trip().request({ path, body }).call();
    call.reportSentFailure(failure(503));
    const { exchange } = shared.attempt("call-1");
    shared.clock.advance(FIRST_WAIT_MS);
    expect(exchange.last).toMatchObject({ kind: "proceed", phase: "request_headers" });
    expect(String(exchange.proceeded.body)).toBe(body);
  });

  test.each([
    [true, "proceed"],
    [false, "respond"],
  ])("at a fallback whose budget is asked waits for it: room %s, %s", async (room, kind) => {
    const shared = new Gateway(
      provider("openai", { fallbacks: [fallback("anthropic", "c")] }),
      provider("anthropic"),
    );
    const call = shared.trip().request().call();
    const enter = vi.fn<() => Promise<boolean>>(() => Promise.resolve(room));
    Object.assign(call, { fallbackBudgets: { enter } });
    call.reportSentFailure(failure(503));
    const { exchange } = shared.attempt("call-1");
    shared.clock.advance(60_000);
    expect(exchange.answers).toEqual([]);
    await settled();
    expect(exchange.last.kind).toBe(kind);
    expect(call.attempts[1]?.failure?.flags).toBe(
      room ? undefined : "external_tokens_per_day_exceeded",
    );
  });

  test("a client that leaves while it waits: nothing is sent, no timer stays", () => {
    for (const reported of [true, false]) {
      const shared = gateway();
      const call = shared.trip().request().call();
      const { exchange, processor } = shared.attempt("call-1");
      if (reported) call.reportSentFailure(failure(503));
      processor.closed();
      call.reportSentFailure(failure(503));
      shared.clock.advance(60_000);
      expect(exchange.answers).toEqual([]);
      expect(shared.clock.pending).toEqual([]);
    }
  });

  test("a client that leaves while it waits pays nothing, and the attempt that was not sent is none", () => {
    const shared = gateway();
    const trip = shared.trip().request();
    const { processor } = shared.attempt("call-1");
    trip.call().reportSentFailure(failure(503));
    shared.clock.advance(FIRST_WAIT_MS - 1);
    processor.closed();
    trip.closed();
    expect(shared.log).toMatchObject([{ end: "disconnected", usage: "none", retries: 0 }]);
  });

  test("an answer that began while it waited: nothing is sent", () => {
    const shared = gateway();
    const trip = shared.trip().request();
    trip.call().reportSentFailure(failure(503));
    const { exchange } = shared.attempt("call-1");
    trip.responseHeaders(200).responseBody(ANSWERS.openai);
    shared.clock.advance(60_000);
    expect(exchange.answers).toEqual([]);
  });

  test("without a call that is known it is refused: there is no permit", () => {
    const shared = gateway();
    shared.trip().request();
    for (const id of ["call-2", "", "__proto__"]) {
      const { exchange } = shared.attempt(id);
      expect(exchange.responded).toMatchObject({ status: 421, body: "" });
    }
    shared.trip().closed();
  });

  test("a call that is over is refused", () => {
    const shared = gateway();
    shared.trip().request().closed();
    expect(shared.attempt("call-1").exchange.responded.status).toBe(421);
  });

  test("phases that it never asked for fail closed", () => {
    const shared = gateway();
    shared.trip().request();
    const { exchange, processor } = shared.attempt("call-1");
    processor.phase({ kind: "request_body", body: Buffer.from("{}"), endOfStream: true });
    expect(exchange.last).toEqual({ kind: "fail" });
  });

  test("a first attempt that was sent here goes on as it is, in its own time; the next is a second one", () => {
    const shared = new Gateway(
      provider("openai", { retries: retries(2), firstByteTimeoutMs: 5_000 }),
    );
    const call = shared.trip().request().call();
    const first = shared.attempt("call-1").exchange;
    expect(first.proceeded).toEqual({
      headers: {
        set: [
          ["x-svc-upstream", "upstream/default/openai@https://openai.test:443"],
          ["x-envoy-upstream-rq-per-try-timeout-ms", "5000"],
        ],
      },
      clearRouteCache: true,
    });
    expect(call.retries).toBe(0);
    const second = shared.attempt("call-1").exchange;
    expect(second.answers).toEqual([]);
    call.reportSentFailure(failure(0, undefined, "UT"));
    shared.clock.advance(FIRST_WAIT_MS);
    expect(setOf(second).get("x-envoy-upstream-rq-per-try-timeout-ms")).toBe("5000");
    expect(call.retries).toBe(1);
  });
});

describe("the end of the plan", () => {
  test("a wait above the cap, with nothing to fall back to, is shown with its retry-after", () => {
    const shared = new Gateway(provider("openai", { retries: retries(3) }));
    const trip = shared.trip().request();
    trip.call().reportSentFailure(failure(429, 10_001));
    const { exchange } = shared.attempt("call-1");
    expect(exchange.responded).toMatchObject({ status: 421, body: "" });
    trip.responseHeaders(421);
    const { status, headers, body } = trip.exchange.responded;
    expect(status).toBe(429);
    expect(headers.get("retry-after")).toBe("11");
    expect(JSON.parse(body)).toMatchObject({
      error: { code: "upstream_rate_limited", type: "rate_limit_error" },
    });
    expect(shared.log).toMatchObject([
      { status: 429, end: "failed", code: "upstream_rate_limited", usage: "none" },
    ]);
  });

  test("a wait above the cap falls back at once", () => {
    const shared = new Gateway(
      provider("openai", { retries: retries(3), fallbacks: [fallback("anthropic", "claude")] }),
      provider("anthropic"),
    );
    const call = shared.trip().request().call();
    call.reportSentFailure(failure(429, 10_001));
    const { exchange } = shared.attempt("call-1");
    shared.clock.advance(0);
    expect(setOf(exchange).get("x-svc-upstream")).toBe(
      "upstream/default/anthropic@https://anthropic.test:443",
    );
    expect(call.fellBackFrom).toBe("openai/m");
    expect(call.modelId).toBe("anthropic/claude");
  });

  test("a fallback that cannot express the request is skipped", () => {
    const fallbacks = [fallback("anthropic"), fallback("other")];
    const shared = new Gateway(
      provider("openai", { fallbacks }),
      provider("anthropic"),
      provider("other"),
    );
    const call = shared
      .trip()
      .request({ body: chat("openai/m", { n: 2 }) })
      .call();
    call.reportSentFailure(failure(500));
    const { exchange } = shared.attempt("call-1");
    shared.clock.advance(0);
    expect(exchange.answers).toHaveLength(1);
    expect(setOf(exchange).get("x-svc-upstream")).toBe(
      "upstream/default/other@https://other.test:443",
    );
    expect(
      call.attempts.map(({ target, failure: why }) => [target.provider.name, why?.flags]),
    ).toEqual([
      ["openai", ""],
      ["anthropic", "unsupported_by_upstream"],
      ["other", undefined],
    ]);
  });

  test("a fallback skipped when the report before it never came: the reason stands at the one that was skipped", () => {
    const fallbacks = [fallback("anthropic"), fallback("other")];
    const shared = new Gateway(
      provider("openai", { fallbacks }),
      provider("anthropic"),
      provider("other"),
    );
    const call = shared
      .trip()
      .request({ body: chat("openai/m", { n: 2 }) })
      .call();
    shared.attempt("call-1");
    shared.clock.advance(250);
    expect(
      call.attempts.map(({ target, failure: why }) => [
        target.provider.name,
        why?.flags === "unsupported_by_upstream",
      ]),
    ).toEqual([
      ["openai", false],
      ["anthropic", true],
      ["other", false],
    ]);
  });

  test("a report after a skipped attempt is of the one that was sent", () => {
    const fallbacks = [fallback("anthropic"), fallback("other")];
    const shared = new Gateway(
      provider("openai", { fallbacks }),
      provider("anthropic"),
      provider("other"),
    );
    const call = shared
      .trip()
      .request({ body: chat("openai/m", { n: 2 }) })
      .call();
    call.reportSentFailure(failure(500));
    shared.attempt("call-1");
    shared.clock.advance(0);
    call.reportSentFailure(failure(502));
    expect(call.attempts.map((attempt) => attempt.failure?.status)).toEqual([500, 0, 502]);
  });

  test("no fallback can express the request: the failure of the one that could is told", () => {
    const shared = new Gateway(
      provider("openai", { fallbacks: [fallback("anthropic")] }),
      provider("anthropic"),
    );
    const trip = shared.trip().request({ body: chat("openai/m", { n: 2 }) });
    trip.call().reportSentFailure(failure(500));
    const { exchange } = shared.attempt("call-1");
    shared.clock.advance(0);
    expect(exchange.responded.status).toBe(421);
    trip.responseHeaders(421);
    expect(trip.exchange.responded.status).toBe(503);
    expect(JSON.parse(trip.exchange.responded.body)).toMatchObject({
      error: { code: "upstream_unavailable" },
    });
    expect(trip.exchange.responded.headers.has("retry-after")).toBe(false);
  });
});

describe("nothing of an attempt stays on the next", () => {
  /** Headers that some kind of provider receives and others must not. */
  const OWN: readonly string[] = [...CREDENTIAL_HEADERS, "anthropic-version", "anthropic-beta"];

  const expected: Readonly<Record<ProviderKind, readonly string[]>> = {
    openai: ["authorization"],
    "openai-compatible": ["authorization"],
    mock: [],
    "azure-openai": ["api-key"],
    anthropic: ["x-api-key", "anthropic-version"],
    gemini: ["x-goog-api-key"],
  };

  const pairs = PROVIDER_KINDS.flatMap((from) => PROVIDER_KINDS.map((to) => [from, to] as const));

  test.each(pairs)("%s, then %s", (from, to) => {
    const first = provider("first", {
      kind: from,
      dialect: provider(from).dialect,
      fallbacks: [fallback("second")],
    });
    const second = provider("second", { kind: to, dialect: provider(to).dialect });
    const shared = new Gateway(
      from === "mock" ? { ...first, apiKey: undefined } : first,
      to === "mock" ? { ...second, apiKey: undefined } : second,
    );
    const trip = shared.trip().request({
      path: "/v1/messages",
      headers: {
        "anthropic-version": "2023-01-01",
        "anthropic-beta": "some-beta",
        cookie: "a=b",
        "openai-project": "p",
      },
      body: { ...chat("first/m"), max_tokens: 10 },
    });
    trip.call().reportSentFailure(failure(500));
    const { exchange } = shared.attempt("call-1");
    shared.clock.advance(0);

    // Envoy sends the first attempt's request into the second attempt.
    const carried = new Map(trip.exchange.proceeded.headers?.set);
    const { headers, body } = exchange.proceeded;
    for (const name of headers?.remove ?? []) carried.delete(name);
    for (const [name, value] of headers?.set ?? []) carried.set(name, value);

    const own = to === "anthropic" ? [...expected[to], "anthropic-beta"] : expected[to];
    expect(OWN.filter((name) => carried.has(name)).sort()).toEqual([...own].sort());
    expect([...carried.values(), String(body)].join("\n")).not.toContain("sk-secret-first");
    expect(carried.get(":authority")).toBe("second.test");
    expect(carried.get("x-svc-upstream")).toBe("upstream/default/second@https://second.test:443");
    const parsed = JSON.parse(String(body)) as Record<string, unknown>;
    expect("contents" in parsed).toBe(to === "gemini");
    expect("messages" in parsed).toBe(to !== "gemini");
  });

  test("each attempt is made from the caller's own body, with the model of that attempt", () => {
    const openai = provider("openai", {
      fallbacks: [fallback("anthropic", "claude"), fallback("other", "gpt")],
    });
    const shared = new Gateway(openai, provider("anthropic"), provider("other"));
    const call = shared.trip().request().call();
    const models = [1, 2].map(() => {
      call.reportSentFailure(failure(500));
      const { exchange } = shared.attempt("call-1");
      shared.clock.advance(0);
      return JSON.parse(String(exchange.proceeded.body)) as object;
    });
    expect(models).toEqual([
      expect.objectContaining({
        model: "claude",
        messages: [{ role: "user", content: expect.anything() as unknown }],
      }),
      { ...chat("gpt") },
    ]);
  });
});
