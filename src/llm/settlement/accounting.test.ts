import { describe, expect, test } from "vitest";
import type { Call } from "../call.ts";
import type { Usage } from "../dialects/dialect.ts";
import { identityHeaders, totalsHeaders } from "./accounting.ts";
import { Gateway, provider } from "../testing.ts";
import { chat } from "../testing-samples.ts";

const usage: Usage = {
  inputTokens: 100,
  cachedInputTokens: 20,
  cacheWrite5mTokens: 0,
  cacheWrite1hTokens: 0,
  outputTokens: 7,
};
const none = { cachedInputTokens: 0, cacheWrite5mTokens: 0, cacheWrite1hTokens: 0 };
const completed = { status: 200, end: "completed", code: undefined } as const;

function started(
  change: (call: Call) => void,
  model = "openai/m",
): { readonly shared: Gateway; readonly call: Call } {
  const shared = new Gateway(provider("openai"), provider("anthropic"));
  const call = shared
    .trip()
    .request({ body: chat(model) })
    .call();
  change(call);
  return { shared, call };
}

describe("assess", () => {
  test.each<
    [string, (call: Call) => void, "exact" | "estimated" | "none", Partial<Usage> | undefined]
  >([
    [
      "the provider's final word",
      (call) => Object.assign(call.answer, { usage, partialUsage: { ...usage, outputTokens: 1 } }),
      "exact",
      usage,
    ],
    ["nothing was begun", () => undefined, "none", undefined],
    [
      "an answer that never came whole",
      (call) => Object.assign(call.answer, { begun: true }),
      "estimated",
      { ...none, outputTokens: 4_096 },
    ],
    [
      "a whole answer without usage",
      (call) => Object.assign(call.answer, { begun: true, receivedWhole: true, bytes: 33 }),
      "estimated",
      { outputTokens: 10 },
    ],
    [
      "the provider's first word, and less than may have been generated",
      (call) =>
        Object.assign(call.answer, { begun: true, partialUsage: { ...usage, outputTokens: 1 } }),
      "estimated",
      { ...usage, outputTokens: 4_096 },
    ],
    [
      "the provider's first word, and more than may have been generated",
      (call) =>
        Object.assign(call.answer, {
          begun: true,
          receivedWhole: true,
          bytes: 4,
          partialUsage: { ...usage, outputTokens: 50 },
        }),
      "estimated",
      { ...usage, outputTokens: 50 },
    ],
    [
      "a first word before anything was begun",
      (call) => Object.assign(call.answer, { partialUsage: usage }),
      "none",
      undefined,
    ],
  ])("%s", (_name, change, kind, counts) => {
    const { shared, call } = started(change);
    const { usageKind, usage: found } = shared.accounting.assess(call);
    expect(usageKind).toBe(kind);
    if (counts === undefined) expect(found).toBeUndefined();
    else expect(found).toMatchObject(counts);
    expect(shared.logText).toEqual([]);
  });

  test("the input's estimate is a third of the request's bytes", () => {
    const { shared, call } = started((each) => Object.assign(each.answer, { begun: true }));
    const bytes = JSON.stringify(chat("openai/m")).length;
    expect(shared.accounting.assess(call).usage?.inputTokens).toBe(Math.ceil(bytes / 3));
  });

  test("a model without a price has no cost, and is counted as such", async () => {
    const { shared, call } = started(
      (each) => Object.assign(each.answer, { usage }),
      "openai/unknown",
    );
    const settlement = shared.settle(call, completed);
    expect(settlement.cost).toBeUndefined();
    expect(totalsHeaders(settlement).map(([name]) => name)).not.toContain("x-svc-cost-usd");
    expect(shared.log[0]).not.toHaveProperty("costUsd");
    expect(await shared.metric("svc_llm_unpriced_total")).toEqual([
      { value: 1, labels: { workload: "default/tester", model: "unknown" } },
    ]);
    expect(await shared.metric("svc_cost_usd_total")).toEqual([]);
  });

  test("a clock that would go back gives no negative time", () => {
    const { shared, call } = started(() => undefined);
    Object.assign(call.answer, { startedAt: call.request.startedAt + 5 });
    expect(shared.accounting.assess(call).durationMs).toBe(0);
  });
});

describe("settle", () => {
  test("counts tokens by source, cost by kind, and time", async () => {
    const { shared, call } = started((each) => Object.assign(each.answer, { usage }));
    shared.clock.advance(1_500);
    shared.settle(call, completed);
    const target = { workload: "default/tester", model: "m", provider: "openai" };
    expect(await shared.metric("svc_llm_tokens_total")).toEqual([
      { value: 100, labels: { ...target, kind: "input", source: "exact" } },
      { value: 20, labels: { ...target, kind: "cached_input", source: "exact" } },
      { value: 7, labels: { ...target, kind: "output", source: "exact" } },
    ]);
    const costs = await shared.metric("svc_cost_usd_total");
    expect(costs.map(({ value, labels }) => [labels["kind"], value])).toEqual([
      ["input", 80e-6],
      ["cached_input", 10e-6],
      ["output", 70e-6],
    ]);
    const durations = await shared.metric("svc_llm_duration_seconds");
    expect(
      durations
        .filter(({ labels }) => labels["le"] === 1 || labels["le"] === 2.5)
        .map(({ value }) => value),
    ).toEqual([0, 1]);
  });

  test("retries are counted by the provider that failed, fallbacks by where the call went", async () => {
    const { shared, call } = started((each) => Object.assign(each.answer, { usage }));
    call.reportFailure(1, { status: 503, retryAfterMs: undefined, flags: "" });
    call.begin(call.target);
    call.reportFailure(2, { status: 0, retryAfterMs: undefined, flags: "UF" });
    call.begin({ provider: provider("anthropic"), model: "claude" });
    shared.settle(call, completed);
    expect(await shared.metric("svc_llm_retries_total")).toEqual([
      { value: 1, labels: { workload: "default/tester", provider: "openai", status: "503" } },
      { value: 1, labels: { workload: "default/tester", provider: "openai", status: "UF" } },
    ]);
    expect(await shared.metric("svc_llm_fallbacks_total")).toEqual([
      {
        value: 1,
        labels: { workload: "default/tester", from: "openai/m", to: "anthropic/claude" },
      },
    ]);
    expect(shared.log).toMatchObject([
      {
        retries: 2,
        asked: "openai/m",
        model: "anthropic/claude",
        attempts: [{ provider: "openai" }, {}, { provider: "anthropic" }],
      },
    ]);
    expect(Object.fromEntries(identityHeaders(call))).toEqual({
      "x-svc-call-id": "call-1",
      "x-svc-model-id": "anthropic/claude",
      "x-svc-retries": "2",
      "x-svc-fell-back-from": "openai/m",
    });
  });

  test("the log names what a translation dropped, and says nothing where nothing was", () => {
    const shared = new Gateway(provider("anthropic"), provider("openai"));
    const ask = (model: string): unknown =>
      shared
        .trip()
        .request({ body: chat(model, { seed: 7 }) })
        .responseHeaders(500)
        .closed();
    ask("anthropic/claude");
    ask("openai/m");
    expect(shared.log[0]?.["translation"]).toEqual([expect.stringContaining("seed")]);
    expect(shared.log[1]).not.toHaveProperty("translation");
  });

  test("the header x-svc-dropped names what the answering provider did not get", () => {
    const shared = new Gateway(provider("anthropic"), provider("openai"));
    const droppedOf = (model: string, extra: object): string | undefined => {
      const trip = shared.trip().request({ body: chat(model, extra) });
      const call = shared.calls.get(`call-${shared.log.length + 1}`) as Call;
      const header = new Map(identityHeaders(call)).get("x-svc-dropped");
      trip.closed();
      return header;
    };
    const hostile = { "a\r\nx-evil": 1, "ü,b": 1, c: 1 };
    expect(droppedOf("anthropic/claude", { seed: 7, ...hostile })).toBe("a??x-evil, ??b, c, seed");
    expect(droppedOf("anthropic/claude", { seed: undefined })).toBeUndefined();
    expect(droppedOf("openai/m", { seed: 7 })).toBeUndefined();
    const names = Array.from({ length: 9 }, (_, index) => `${"x".repeat(200)}${index}`);
    const long = droppedOf("anthropic/claude", Object.fromEntries(names.map((name) => [name, 1])));
    expect(long).toHaveLength(1_024);
    expect(long).toMatch(/^x+0, .*\.\.\.$/);
  });

  test("time to the first token is that of streams that were answered", async () => {
    const shared = new Gateway(provider("openai"));
    const streamed = { body: chat("openai/m", { stream: true }) };
    const counted = async (): Promise<number> =>
      (await shared.metric("svc_llm_time_to_first_token_seconds"))
        .filter(({ labels }) => labels["le"] === "+Inf")
        .reduce((sum, { value }) => sum + value, 0);
    shared.trip().request().responseHeaders(200).closed();
    shared.trip().request(streamed).responseHeaders(500).closed();
    shared.trip().request(streamed).responseHeaders(503, { "x-svc-local": "UF x" }).closed();
    shared.trip().request(streamed).closed();
    expect(await counted()).toBe(0);
    shared
      .trip()
      .request(streamed)
      .responseHeaders(200, { "content-type": "text/event-stream" })
      .closed();
    expect(await counted()).toBe(1);
  });
});
