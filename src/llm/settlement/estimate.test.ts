/** Ways to leave or lose a call: none is free, and none costs a day's budget. */
import { describe, expect, test } from "vitest";
import type { AgentLimits } from "../../policy/snapshot.ts";
import { MAX_TOKENS_PER_SECOND } from "./estimate.ts";
import { agent, Gateway, NO_LIMITS, provider, snapshot, TOKEN, type Trip } from "../testing.ts";
import { hashKey } from "../../access/credentials.ts";
import { chat } from "../testing-samples.ts";

const EVENT_STREAM = { "content-type": "text/event-stream" };

function gateway(limits: Partial<AgentLimits> = {}): Gateway {
  const providers = [provider("openai"), provider("anthropic"), provider("gemini")];
  const shared = new Gateway(...providers);
  const caller = { ...agent(...providers), limits: { ...NO_LIMITS, ...limits } };
  shared.policy = {
    ...snapshot(...providers),
    agentsByTokenHash: new Map([[hashKey(TOKEN), caller]]),
  };
  return shared;
}

function output(shared: Gateway): unknown {
  expect(shared.log).toHaveLength(1);
  const { usage, outputTokens } = shared.log[0] ?? {};
  return usage === "none" ? "nothing" : outputTokens;
}

const delta = (text: string): string =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: text } }] })}\n\n`;

/** A stream of `tokens` tokens as one event each, which take 20 ms each. */
function stream(shared: Gateway, trip: Trip, tokens: number, text = "word "): void {
  trip.responseHeaders(200, EVENT_STREAM);
  for (let n = 0; n < tokens; n++) {
    shared.clock.advance(20);
    trip.responseBody(delta(text), false);
  }
}

describe("an unstreamed call that is left costs what was reserved for it", () => {
  test.each([
    ["the maximum that it asked for", { max_tokens: 700 }, {}, 700],
    ["times its answers", { max_tokens: 700, n: 3 }, {}, 2_100],
    ["what is assumed", {}, {}, 4_096],
    ["what its limit leaves", {}, { maxTokensPerRequest: 500 }, 500 - 16],
    ["the maximum, with a budget", { max_tokens: 700 }, { maxTokensPerDay: 100_000 }, 700],
  ])("%s", (_name, more, limits, tokens) => {
    const shared = gateway(limits);
    shared
      .trip()
      .request({ body: chat("openai/m", more) })
      .closed();
    expect(output(shared)).toBe(tokens);
  });

  test("also while its body comes", () => {
    const shared = gateway();
    shared
      .trip()
      .request({ body: chat("openai/m", { max_tokens: 70 }) })
      .responseHeaders(200)
      .closed();
    expect(output(shared)).toBe(70);
  });

  test("but nothing where every attempt was refused", () => {
    const shared = gateway();
    const trip = shared.trip().request();
    trip.call().reportSentFailure({ status: 503, retryAfterMs: undefined, flags: "" });
    trip.closed();
    expect(output(shared)).toBe("nothing");
  });
});

describe("a stream that is left", () => {
  const streamed = (more: object = {}) => chat("openai/m", { stream: true, ...more });

  test.each([1, 10, 100, 1_000])(
    "after %i tokens costs no less than them, and at most twice as much",
    (tokens) => {
      const shared = gateway();
      const trip = shared.trip().request({ body: streamed() });
      stream(shared, trip, tokens);
      trip.closed();
      expect(output(shared)).toBeGreaterThanOrEqual(tokens);
      expect(output(shared)).toBeLessThanOrEqual(2 * tokens);
    },
  );

  test.each([
    ["Chinese", "漢字", 1.5],
    ["code", "}\n", 1],
    ["large events", "word ".repeat(20), 20],
  ])("of %s costs no less than its tokens, and at most twice as much", (_name, text, tokens) => {
    const shared = gateway();
    const trip = shared.trip().request({ body: streamed() });
    stream(shared, trip, 100, text);
    trip.closed();
    expect(output(shared)).toBeGreaterThanOrEqual(100 * tokens);
    expect(output(shared)).toBeLessThanOrEqual(200 * tokens);
  });

  test("while it is silent costs what can have been written meanwhile", () => {
    const shared = gateway();
    const trip = shared.trip().request({ body: streamed() });
    stream(shared, trip, 10);
    shared.clock.advance(4_000);
    trip.closed();
    expect(output(shared)).toBe(16 + 4 * MAX_TOKENS_PER_SECOND);
  });

  test("never costs more than its maximum, unless more has passed", () => {
    const shared = gateway();
    const trip = shared.trip().request({ body: streamed({ max_tokens: 50 }) });
    shared.clock.advance(600_000);
    trip.closed();
    expect(output(shared)).toBe(50);

    const other = gateway();
    const beyond = other.trip().request({ body: streamed({ max_tokens: 5 }) });
    stream(other, beyond, 80);
    beyond.closed();
    expect(output(other)).toBe(122);
  });

  describe("by a model that thinks unseen", () => {
    test.each<[string, string, object, number]>([
      ["an effort: the time that went by", "openai/m", { reasoning_effort: "high" }, 2_010],
      ["no effort", "openai/m", { reasoning_effort: "none" }, 10],
      ["a model that thinks unasked", "openai/o3-mini", {}, 2_010],
      ["a model that does not", "openai/gpt-4o", {}, 10],
    ])("%s", (_name, model, more, tokens) => {
      const shared = gateway();
      const trip = shared.trip().request({
        body: chat(model, { stream: true, max_tokens: 100_000, ...more }),
      });
      trip.responseHeaders(200, EVENT_STREAM);
      shared.clock.advance((2_000 / MAX_TOKENS_PER_SECOND) * 1_000);
      trip.responseBody(delta("x"), false);
      for (let n = 1; n < 10; n++) trip.responseBody(delta("x"), false);
      trip.closed();
      expect(output(shared)).toBe(tokens);
    });

    test("a budget of thinking bounds the time", () => {
      const shared = gateway();
      const trip = shared.trip().request({
        path: "/v1/messages",
        body: chat("anthropic/m", {
          stream: true,
          max_tokens: 50_000,
          thinking: { type: "enabled", budget_tokens: 1_200 },
        }),
      });
      trip.responseHeaders(200, EVENT_STREAM);
      shared.clock.advance(60_000);
      const event = { type: "content_block_delta", delta: { type: "text_delta", text: "x" } };
      trip.responseBody(`event: content_block_delta\ndata: ${JSON.stringify(event)}\n\n`, false);
      trip.closed();
      expect(output(shared)).toBe(1_201);
    });
  });
});

describe("an attempt that was sent and brought no answer may have cost something", () => {
  const failing = (flags: string, status = 0) => ({ status, retryAfterMs: undefined, flags });

  function retried(flags: string, status: number): Gateway {
    const shared = new Gateway(
      provider("openai", {
        retries: { attempts: 2, baseIntervalMs: 0, maxIntervalMs: 0, maxRetryAfterMs: 0 },
      }),
    );
    const trip = shared.trip().request({ body: chat("openai/m", { max_tokens: 100 }) });
    shared.clock.advance(1_000);
    trip.call().reportSentFailure(failing(flags, status));
    shared.attempt("call-1");
    shared.clock.advance(0);
    trip.responseHeaders(200).responseBody({
      choices: [{ message: { content: "x" }, finish_reason: "stop" }],
      usage: { prompt_tokens: 10, completion_tokens: 1 },
    });
    return shared;
  }

  const counted = async (shared: Gateway): Promise<number | undefined> =>
    (await shared.limits.usage([{ scope: "agent/default/tester", account: "agent" }]))[0]?.tokens;

  test.each([
    ["a timeout", "upstreamRequestTimeout", 0, true],
    ["a connection that ended", "upstreamConnectionTermination", 0, true],
    ["a reset", "upstreamRemoteReset", 0, true],
    ["a failure that nobody reported", "", 0, true],
    ["a connection that was never made", "upstreamConnectionFailure", 0, false],
    ["an error of the provider", "", 503, false],
  ])("%s", async (_name, flags, status, costs) => {
    expect(await counted(retried(flags, status))).toBe(11 + (costs ? 100 + 30 : 0));
  });

  test("also the last one, whose failure Envoy's own reply tells", async () => {
    const shared = gateway();
    const trip = shared.trip().request({ body: chat("openai/m", { max_tokens: 100 }) });
    trip.responseHeaders(504, { "x-svc-local": "UT response_timeout" });
    expect(await counted(shared)).toBe(130);
    expect(shared.log).toMatchObject([{ end: "failed", usage: "none" }]);
  });

  test("and nothing is counted where the last one never reached its provider", async () => {
    const shared = gateway();
    const trip = shared.trip().request({ body: chat("openai/m", { max_tokens: 100 }) });
    trip.responseHeaders(503, { "x-svc-local": "UF upstream_reset_before_response_started" });
    expect(await counted(shared)).toBe(0);
  });
});
