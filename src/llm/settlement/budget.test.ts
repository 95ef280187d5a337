/** Limits as callers experience them, through the whole pipeline with counters in memory. */
import { describe, expect, test } from "vitest";
import { hashKey } from "../../access/credentials.ts";
import type { AgentLimits, ModelProviderPolicy } from "../../policy/snapshot.ts";
import { ASSUMED_OUTPUT_TOKENS } from "../request/call-size.ts";
import {
  accessKey,
  agent,
  Gateway,
  NO_LIMITS,
  provider,
  type Request,
  snapshot,
  TOKEN,
  type Trip,
} from "../testing.ts";
import { settled } from "../../platform/testing.ts";
import { ANSWERS, chat } from "../testing-samples.ts";

const KEY = `svc_${"k".repeat(43)}`;
const DAY_MS = 86_400_000;
const ANSWER_TOKENS = 107;

/** An agent with these limits. */
function limited(limits: Partial<AgentLimits>, ...providers: ModelProviderPolicy[]): Gateway {
  const used = providers.length === 0 ? [provider("openai")] : providers;
  const gateway = new Gateway(...used);
  gateway.policy = {
    ...snapshot(...used),
    agentsByTokenHash: new Map([
      [hashKey(TOKEN), { ...agent(...used), limits: { ...NO_LIMITS, ...limits } }],
    ]),
  };
  return gateway;
}

/** Holders of access keys `a` and `b` to one provider. */
function external(
  provided: { maxTokensPerDay?: number },
  limits: { maxTokensPerDay?: number; maxRequestsPerDay?: number },
): Gateway {
  const opened = provider("openai", { external: { maxTokensPerDay: provided.maxTokensPerDay } });
  const gateway = new Gateway(opened);
  const all = {
    maxTokensPerDay: limits.maxTokensPerDay,
    maxRequestsPerDay: limits.maxRequestsPerDay,
    requestsPerMinute: undefined,
  };
  const entry = (name: string) => ({
    key: accessKey(opened, { name, workload: `ext:${name}`, limits: all }),
    graceUntil: undefined,
  });
  gateway.policy = {
    ...snapshot(opened),
    keysByHash: new Map([
      [hashKey(`${KEY.slice(0, -1)}a`), entry("a")],
      [hashKey(`${KEY.slice(0, -1)}b`), entry("b")],
    ]),
  };
  return gateway;
}

const asKey = (name: string, body: object = chat("m", { max_tokens: 10 })): Request => ({
  path: "/ext/v1/chat/completions",
  headers: { authorization: `Bearer ${KEY.slice(0, -1)}${name}` },
  body,
});

/** Runs up to the decision of the counters. */
async function ask(gateway: Gateway, request: Request = {}): Promise<Trip> {
  const trip = gateway.trip().request(request);
  await Promise.resolve();
  await Promise.resolve();
  return trip;
}

const answered = (trip: Trip): Trip => trip.responseHeaders(200).responseBody(ANSWERS.openai);

function refusal(trip: Trip): {
  status: number;
  code: string;
  message: string;
  retryAfter: string | undefined;
  shouldRetry: string | undefined;
} {
  const { status, headers, body } = trip.exchange.responded;
  const { error } = JSON.parse(body) as { error: { code: string; message: string } };
  return {
    status,
    code: error.code,
    message: error.message,
    retryAfter: headers.get("retry-after"),
    shouldRetry: headers.get("x-should-retry"),
  };
}

const generationConfig = (body: Record<string, unknown>): Record<string, unknown> =>
  body["generationConfig"] as Record<string, unknown>;

const passed = (trip: Trip): boolean => trip.exchange.last.kind === "proceed";

describe("requestsPerMinute", () => {
  test("in any 60 seconds", async () => {
    const gateway = limited({ requestsPerMinute: 2 });
    answered(await ask(gateway));
    gateway.clock.advance(20_000);
    answered(await ask(gateway));
    gateway.clock.advance(20_000);
    expect(refusal(await ask(gateway))).toEqual({
      status: 429,
      code: "requests_per_minute_exceeded",
      message: "The limit requestsPerMinute of 2 is reached; a request is possible again in 20 s.",
      retryAfter: "20",
      shouldRetry: undefined,
    });
    gateway.clock.advance(20_000);
    expect(passed(await ask(gateway))).toBe(true);
    expect(refusal(await ask(gateway)).retryAfter).toBe("20");
  });
});

describe("maxConcurrentRequests", () => {
  const ends: readonly (readonly [string, (trip: Trip) => void])[] = [
    ["an answer", (trip) => void answered(trip)],
    [
      "an error of the provider",
      (trip) => void trip.responseHeaders(500).responseBody({ error: { message: "x" } }),
    ],
    ["Envoy's own reply", (trip) => void trip.responseHeaders(503, { "x-svc-local": "UF x" })],
    ["a client that leaves", (trip) => void trip.closed()],
  ];

  test.each(ends)("a place is free again after %s", async (_name, end) => {
    const gateway = limited({ maxConcurrentRequests: 1 });
    const first = await ask(gateway);
    expect(refusal(await ask(gateway))).toMatchObject({
      status: 429,
      code: "concurrent_requests_exceeded",
      message: expect.stringContaining("maxConcurrentRequests of 1") as string,
    });
    end(first);
    expect(passed(await ask(gateway))).toBe(true);
    expect(refusal(await ask(gateway)).code).toBe("concurrent_requests_exceeded");
  });

  test("a client that leaves while the counters are asked holds no place, and no upstream is asked", async () => {
    const gateway = limited({ maxConcurrentRequests: 1 });
    const store = Promise.withResolvers<void>();
    const admit = gateway.limits.admit.bind(gateway.limits);
    gateway.limits.admit = async (request) => store.promise.then(() => admit(request));
    const trip = gateway.trip().requestHeaders();
    trip.closed();
    store.resolve();
    await settled();
    gateway.limits.admit = admit;
    expect(trip.exchange.answers).toEqual([]);
    expect(gateway.audit.events).toEqual([]);
    expect(passed(await ask(gateway))).toBe(true);
  });

  test("a client that leaves while its budget is reserved holds nothing, and no upstream is asked", async () => {
    const gateway = limited({ maxConcurrentRequests: 1, maxTokensPerDay: 10_000 });
    const store = Promise.withResolvers<void>();
    const reserve = gateway.limits.reserve.bind(gateway.limits);
    gateway.limits.reserve = async (...asked) => store.promise.then(() => reserve(...asked));
    const trip = gateway.trip().request();
    trip.closed();
    store.resolve();
    await settled();
    gateway.limits.reserve = reserve;
    expect(trip.exchange.last.kind).toBe("pass");
    expect(gateway.calls.size).toBe(0);
    expect(gateway.audit.events).toEqual([]);
    expect(passed(await ask(gateway))).toBe(true);
  });

  test("a defect in the middle gives back what the request holds", async () => {
    const gateway = limited({ maxConcurrentRequests: 1, maxTokensPerDay: 10_000 });
    const { prices } = gateway;
    const failing = {
      priceOf: (): never => {
        throw new Error("defect");
      },
    };
    Object.assign(gateway, { prices: failing });
    expect((await ask(gateway)).exchange.last.kind).toBe("fail");
    Object.assign(gateway, { prices });
    expect(gateway.defects.map(String)).toEqual(["Error: defect"]);
    expect(await gateway.bytesInFlight()).toBe(0);
    expect(passed(await ask(gateway))).toBe(true);
  });

  test("counts from the headers on: before the body is there, and until a refusal of the body", async () => {
    const gateway = limited({ maxConcurrentRequests: 1 });
    const uploading = gateway.trip().requestHeaders();
    expect(uploading.exchange.last.kind).toBe("pass");
    expect(refusal(gateway.trip().requestHeaders()).code).toBe("concurrent_requests_exceeded");
    uploading.requestBody("{");
    expect(refusal(uploading).code).toBe("invalid_request");
    const next = gateway.trip().requestHeaders();
    expect(next.exchange.last.kind).toBe("pass");
    next.closed();
    expect(passed(await ask(gateway))).toBe(true);
  });
});

describe("maxTokensPerDay", () => {
  const body = chat("openai/m", { max_tokens: 500 });

  test("the worst case is reserved, the true use stays, and the day ends it", async () => {
    const gateway = limited({ maxTokensPerDay: 1_100 });
    const first = await ask(gateway, { body });
    const second = await ask(gateway, { body });
    const refused = refusal(await ask(gateway, { body }));
    expect(refused).toMatchObject({
      status: 429,
      code: "tokens_per_day_exceeded",
      shouldRetry: "false",
    });
    expect(refused.message).toMatch(
      /^The limit maxTokensPerDay of 1100 .*: 0 used today, 10\d\d reserved .*, up to 5\d\d asked for\. It resets at 00:00 UTC, in \d+ s\.$/,
    );
    expect(Number(refused.retryAfter)).toBe(
      Math.ceil((DAY_MS - (gateway.clock.now() % DAY_MS)) / 1000),
    );
    answered(first);
    answered(second);
    // 214 used: there is room for one more.
    expect(passed(await ask(gateway, { body }))).toBe(true);
    expect(refusal(await ask(gateway, { body })).message).toContain(
      `${2 * ANSWER_TOKENS} used today`,
    );
    gateway.clock.advance(DAY_MS);
    expect(passed(await ask(gateway, { body }))).toBe(true);
  });

  test("a failed call gives everything back", async () => {
    const gateway = limited({ maxTokensPerDay: 600 });
    (await ask(gateway, { body })).responseHeaders(500).responseBody({ error: { message: "x" } });
    expect(
      await gateway.limits.usage([{ scope: "agent/default/tester", account: "agent" }]),
    ).toEqual([{ tokens: 0, microUsd: 0, requests: 0, unpricedRequests: 0, inFlight: 0 }]);
    expect(passed(await ask(gateway, { body }))).toBe(true);
  });

  test("what is used is counted into the day of its admission", async () => {
    const gateway = limited({ maxTokensPerDay: 600 });
    const before = await ask(gateway, { body });
    gateway.clock.advance(DAY_MS);
    const after = await ask(gateway, { body });
    expect(passed(after)).toBe(true);
    answered(before);
    expect(
      await gateway.limits.usage([{ scope: "agent/default/tester", account: "agent" }]),
    ).toMatchObject([{ tokens: 0 }]);
    answered(after);
    expect(
      await gateway.limits.usage([{ scope: "agent/default/tester", account: "agent" }]),
    ).toMatchObject([{ tokens: ANSWER_TOKENS }]);
  });

  test("what names no maximum is reserved as one that is assumed, and asked for as it is", async () => {
    const gateway = limited({ maxTokensPerDay: 100_000 });
    const trip = await ask(gateway);
    expect(trip.call().request.size).toMatchObject({ outputTokens: ASSUMED_OUTPUT_TOKENS });
    expect(String(trip.exchange.proceeded.body)).not.toContain("max_");
  });

  test("several answers at once are as many times the tokens", async () => {
    const gateway = limited({ maxTokensPerDay: 1_000 });
    expect(
      refusal(await ask(gateway, { body: chat("openai/m", { max_tokens: 300, n: 4 }) })).code,
    ).toBe("tokens_per_day_exceeded");
    expect(passed(await ask(gateway, { body: chat("openai/m", { max_tokens: 300, n: 3 }) }))).toBe(
      true,
    );
  });

  test("of two maximums the larger counts", async () => {
    const gateway = limited({ maxTokensPerDay: 1_000 });
    expect(
      refusal(
        await ask(gateway, {
          body: chat("openai/m", { max_tokens: 5_000, max_completion_tokens: 1 }),
        }),
      ).code,
    ).toBe("tokens_per_day_exceeded");
  });
});

describe("maxTokensPerRequest", () => {
  test("refuses what asks for more, and says that waiting is of no use", async () => {
    const refused = refusal(
      await ask(limited({ maxTokensPerRequest: 100 }), {
        body: chat("openai/m", { max_tokens: 100 }),
      }),
    );
    expect(refused).toMatchObject({
      status: 429,
      code: "tokens_per_request_exceeded",
      retryAfter: "0",
      shouldRetry: "false",
    });
    expect(refused.message).toMatch(
      /maxTokensPerRequest of 100 .*about \d+ tokens and up to 100 tokens of answer\. It does not reset/,
    );
  });

  test("refuses a prompt that fills it", async () => {
    expect(
      refusal(
        await ask(limited({ maxTokensPerRequest: 100 }), {
          body: chat("openai/m", { user: "words ".repeat(100) }),
        }),
      ).code,
    ).toBe("tokens_per_request_exceeded");
  });

  const openai = provider("openai");
  test.each<[string, ModelProviderPolicy, Request, (body: Record<string, unknown>) => unknown]>([
    ["OpenAI", openai, { body: chat("openai/m") }, (body) => body["max_completion_tokens"]],
    [
      "OpenAI, where null stands",
      openai,
      { body: chat("openai/m", { max_completion_tokens: null }) },
      (body) => body["max_completion_tokens"],
    ],
    [
      "a server of its dialect",
      provider("openai-compatible"),
      { body: chat("openai-compatible/m") },
      (body) => body["max_tokens"],
    ],
    [
      "OpenAI's responses",
      openai,
      { path: "/v1/responses", body: { model: "openai/m", input: "the-prompt" } },
      (body) => body["max_output_tokens"],
    ],
    [
      "Anthropic, from OpenAI's shape",
      provider("anthropic"),
      { body: chat("anthropic/m") },
      (body) => body["max_tokens"],
    ],
    [
      "Gemini, from OpenAI's shape",
      provider("gemini"),
      { body: chat("gemini/m") },
      (body) => generationConfig(body)["maxOutputTokens"],
    ],
    [
      "Gemini",
      provider("gemini"),
      {
        path: "/v1beta/models/gemini%2Fm:generateContent",
        body: { contents: [], generationConfig: { temperature: 1, max_output_tokens: null } },
      },
      (body) => generationConfig(body)["maxOutputTokens"],
    ],
    [
      "Gemini without settings",
      provider("gemini"),
      { path: "/v1beta/models/gemini%2Fm:generateContent", body: { contents: [] } },
      (body) => generationConfig(body)["maxOutputTokens"],
    ],
  ])("what names no maximum is capped: %s", async (_name, upstream, request, read) => {
    const trip = await ask(limited({ maxTokensPerRequest: 1_000 }, upstream), request);
    const cap = read(
      JSON.parse(String(trip.exchange.proceeded.body)) as Record<string, unknown>,
    ) as number;
    expect(cap).toBeGreaterThan(950);
    expect(cap).toBeLessThan(1_000);
    expect(trip.call().request.size?.outputCap).toBe(cap);
  });

  test("a maximum within it goes on as it is", async () => {
    const trip = await ask(limited({ maxTokensPerRequest: 1_000 }), {
      body: chat("openai/m", { max_tokens: 200 }),
    });
    expect(trip.call().request.size?.outputCap).toBeUndefined();
  });

  test("a field that only a careless server would take for the maximum is refused", async () => {
    const trip = await ask(limited({ maxTokensPerRequest: 1_000 }), {
      body: chat("openai/m", { Max_Completion_Tokens: 100_000 }),
    });
    expect(trip.exchange.responded).toMatchObject({ status: 400 });
  });
});

describe("maxCostPerDayUSD", () => {
  // Ten dollars per million output tokens.
  const body = chat("openai/m", { max_tokens: 50_000 });

  test("is held at the worst case, and freed by the true cost", async () => {
    const gateway = limited({ maxMicroUsdPerDay: 600_000 });
    const first = await ask(gateway, { body });
    const refused = refusal(await ask(gateway, { body }));
    expect(refused).toMatchObject({
      status: 429,
      code: "cost_per_day_exceeded",
      shouldRetry: "false",
    });
    expect(refused.message).toMatch(
      /maxCostPerDayUSD of 0\.6 USD .*: 0 USD used today, 0\.5\d* USD reserved .* up to 0\.5\d* USD asked for/,
    );
    answered(first);
    expect(passed(await ask(gateway, { body }))).toBe(true);
  });

  test("0 allows nothing that costs", async () => {
    expect(refusal(await ask(limited({ maxMicroUsdPerDay: 0 }))).code).toBe(
      "cost_per_day_exceeded",
    );
  });

  test("a model without a price is not held back, and counted as such", async () => {
    const gateway = limited({ maxMicroUsdPerDay: 0 });
    answered(await ask(gateway, { body: chat("openai/unpriced") }));
    expect(
      await gateway.limits.usage([{ scope: "agent/default/tester", account: "agent" }]),
    ).toMatchObject([{ microUsd: 0, unpricedRequests: 1, tokens: ANSWER_TOKENS }]);
    expect(gateway.audit.ofType("LLM_CALL")[0]).toMatchObject({
      cost_usd: undefined,
      usage: "exact",
    });
  });
});

describe("access keys", () => {
  test("maxRequestsPerDay is each key's own", async () => {
    const gateway = external({}, { maxRequestsPerDay: 1 });
    answered(await ask(gateway, asKey("a")));
    expect(refusal(await ask(gateway, asKey("a")))).toMatchObject({
      status: 429,
      code: "requests_per_day_exceeded",
      shouldRetry: "false",
    });
    expect(passed(await ask(gateway, asKey("b")))).toBe(true);
  });

  test("maxTokensPerDay is each key's own", async () => {
    const gateway = external({}, { maxTokensPerDay: 100 });
    answered(await ask(gateway, asKey("a")));
    expect(refusal(await ask(gateway, asKey("a")))).toMatchObject({
      code: "tokens_per_day_exceeded",
    });
    expect(passed(await ask(gateway, asKey("b")))).toBe(true);
  });

  test("the provider's external budget is all keys' together, and no agent's", async () => {
    const gateway = external({ maxTokensPerDay: 150 }, {});
    answered(await ask(gateway, { body: chat("openai/m", { max_tokens: 10_000 }) }));
    answered(await ask(gateway, asKey("a")));
    const refused = refusal(await ask(gateway, asKey("b", chat("m", { max_tokens: 100 }))));
    expect(refused).toMatchObject({ code: "external_tokens_per_day_exceeded" });
    expect(refused.message).toContain("externalAccess.maxTokensPerDay of 150");
    expect(refused.message).toContain(`${ANSWER_TOKENS} used today`);
    expect(
      await gateway.limits.usage([
        { scope: "external/default/openai", account: "provider" },
        { scope: "external/default/openai", account: "key/a" },
      ]),
    ).toMatchObject([
      { tokens: ANSWER_TOKENS, requests: 1 },
      { tokens: ANSWER_TOKENS, requests: 1 },
    ]);
  });

  test("counting tokens costs a request and no tokens", async () => {
    const opened = provider("anthropic", { external: { maxTokensPerDay: undefined } });
    const gateway = new Gateway(opened);
    const limits = { maxTokensPerDay: 0, maxRequestsPerDay: 1, requestsPerMinute: undefined };
    const key = accessKey(opened, { limits });
    gateway.policy = {
      ...snapshot(opened),
      keysByHash: new Map([[hashKey(KEY), { key, graceUntil: undefined }]]),
    };
    const request: Request = {
      path: "/ext/v1/messages/count_tokens",
      headers: { authorization: `Bearer ${KEY}` },
      body: { model: "m", messages: [] },
    };
    (await ask(gateway, request)).responseHeaders(200).responseBody({ input_tokens: 12 });
    expect(JSON.parse((await ask(gateway, request)).exchange.responded.body)).toMatchObject({
      error: { details: { error_code: "requests_per_day_exceeded" } },
    });
  });
});

test("a caller without limits does not wait for the counters, and is counted", async () => {
  const gateway = new Gateway(provider("openai"));
  const trip = gateway.trip().request();
  expect(passed(trip)).toBe(true);
  answered(trip);
  expect(
    await gateway.limits.usage([{ scope: "agent/default/tester", account: "agent" }]),
  ).toMatchObject([{ tokens: ANSWER_TOKENS, requests: 1 }]);
});
