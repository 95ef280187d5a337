/** Attempts: when there is another one, its destination, its delay, and its content. */
import { describe, expect, test } from "vitest";
import { begin, call, textOf } from "../support/client.ts";
import { useFixture } from "../support/fixture.ts";
import { expectChat } from "../support/mediated.ts";
import { agentYaml, providerYaml } from "../support/resources.ts";
import { MODELS } from "../support/samples.ts";
import { freePort } from "../support/stack.ts";
import { DIALECTS, type Recorded, type Vendor } from "../support/vendors.ts";
import { Gate, until } from "../support/wait.ts";

const QUICK = { attempts: 3, baseIntervalMs: 1, maxIntervalMs: 2, maxRetryAfterMs: 5_000 };
const MANY = { ...QUICK, attempts: 10 };
const NOWHERE = await freePort();

/** Each vendor falls back to the other two. */
const fallbacks = (...to: (keyof typeof MODELS)[]): object[] =>
  to.map((provider) => ({ provider, model: MODELS[provider] }));

const fixture = useFixture({
  providers: {
    openai: { spec: { retries: QUICK, fallbacks: fallbacks("anthropic", "gemini") } },
    anthropic: { spec: { retries: QUICK, fallbacks: fallbacks("gemini", "openai") } },
    gemini: { spec: { retries: QUICK, fallbacks: fallbacks("openai", "anthropic") } },
  },
  files: ({ openai, anthropic, gemini }) => ({
    "alone.yaml": providerYaml("alone", openai, { spec: { retries: QUICK } }),
    "alone-anthropic.yaml": providerYaml("alone-anthropic", anthropic, {
      spec: { retries: QUICK },
    }),
    "patient.yaml": providerYaml("patient", openai, {
      spec: { retries: { ...QUICK, maxRetryAfterMs: 60_000 } },
    }),
    "hasty.yaml": providerYaml("hasty", openai, {
      spec: { retries: QUICK, timeouts: { firstByteMs: 250 } },
    }),
    "hasty-first.yaml": providerYaml("hasty-first", openai, {
      spec: {
        retries: { ...QUICK, attempts: 1 },
        timeouts: { firstByteMs: 250 },
        fallbacks: [{ provider: "alone-anthropic", model: "claude" }],
      },
    }),
    "refused.yaml": providerYaml("refused", openai, {
      baseURL: `http://127.0.0.1:${NOWHERE}/v1`,
      spec: { retries: { ...QUICK, attempts: 2 }, fallbacks: fallbacks("anthropic") },
    }),
    "many.yaml": providerYaml("many", openai, {
      spec: {
        retries: MANY,
        fallbacks: [
          { provider: "many-anthropic", model: MODELS.anthropic },
          { provider: "many-gemini", model: MODELS.gemini },
        ],
      },
    }),
    "many-anthropic.yaml": providerYaml("many-anthropic", anthropic, { spec: { retries: MANY } }),
    "many-gemini.yaml": providerYaml("many-gemini", gemini, { spec: { retries: MANY } }),
    "agent.yaml": agentYaml("agent", [
      "openai/*",
      "anthropic/*",
      "gemini/*",
      "alone/*",
      "alone-anthropic/*",
      "patient/*",
      "hasty/*",
      "hasty-first/*",
      "refused/*",
      "many/*",
    ]),
  }),
});

const NEXT = { openai: "anthropic", anthropic: "gemini", gemini: "openai" } as const;
const unavailable = (vendor: Vendor): ReturnType<Vendor["fails"]> =>
  vendor.fails({ status: 503, message: `${vendor.dialect} is down` });

describe.each(DIALECTS)("a call in the dialect of %s", (dialect) => {
  test.each([false, true])(
    "falls back to another dialect after three 503 (streamed: %s)",
    async (stream) => {
      const first = fixture.vendors[dialect];
      const second = fixture.vendors[NEXT[dialect]];
      first.always(unavailable(first));
      second.always(second.says({ text: ["From the ", "fallback"] }));
      const model = `${dialect}/${MODELS[dialect]}`;
      const answer = await call(fixture, { dialect, model, stream });
      expect(answer.status).toBe(200);
      expect(textOf(dialect, answer.text)).toBe("From the fallback");
      expect(answer.headers["x-svc-retries"]).toBe("3");
      expect(answer.headers["x-svc-fell-back-from"]).toBe(model);
      expect(answer.headers["x-svc-model-id"]).toBe(`${NEXT[dialect]}/${MODELS[NEXT[dialect]]}`);
      expect(answer.headers["x-envoy-attempt-count"]).toBeUndefined();
      expect(first.requests).toHaveLength(3);
      expect(second.requests).toHaveLength(1);
      for (const request of first.requests)
        expectChat(fixture, first, request, MODELS[dialect], stream);
      expectChat(fixture, second, second.only, MODELS[NEXT[dialect]], stream);
      const account = await fixture.stack.callOf(String(answer.headers["x-svc-call-id"]));
      expect(account).toMatchObject({
        status: 200,
        end: "completed",
        retries: 3,
        inputTokens: 11,
        outputTokens: 7,
      });
    },
  );
});

describe("what is retried", () => {
  test.each([429, 500, 502, 503, 504, 529])("%i is", async (status) => {
    const { openai } = fixture.vendors;
    openai.next(openai.fails({ status, message: "not now" }), openai.says({ text: ["Now"] }));
    const answer = await call(fixture, { dialect: "openai", model: "alone/gpt" });
    expect(answer.status).toBe(200);
    expect(answer.headers["x-svc-retries"]).toBe("1");
    expect(answer.headers["x-svc-fell-back-from"]).toBeUndefined();
  });

  test.each([400, 401, 403, 404, 409, 422])("%i is not", async (status) => {
    const { openai, anthropic } = fixture.vendors;
    openai.always(openai.fails({ status, message: "never" }));
    const answer = await call(fixture, { dialect: "openai", model: "openai/gpt-4o-mini" });
    expect(answer.status).toBe(status);
    expect(answer.message).toContain("never");
    expect(answer.headers["x-svc-retries"]).toBe("0");
    expect(openai.requests).toHaveLength(1);
    expect(anthropic.requests).toHaveLength(0);
  });

  test("a connection that breaks before the first byte is", async () => {
    const { openai } = fixture.vendors;
    openai.next(openai.resets(), openai.says({ text: ["Now"] }));
    const answer = await call(fixture, { dialect: "openai", model: "alone/gpt" });
    expect(answer.status).toBe(200);
    expect(openai.requests).toHaveLength(2);
  });

  test("a connection that is refused leads to the fallback", async () => {
    const { anthropic } = fixture.vendors;
    anthropic.always(anthropic.says({ text: ["Here"] }));
    const answer = await call(fixture, { dialect: "openai", model: "refused/gpt-4o" });
    expect(answer.status).toBe(200);
    expect(textOf("openai", answer.text)).toBe("Here");
    expect(answer.headers["x-svc-retries"]).toBe("2");
    expect(answer.headers["x-svc-fell-back-from"]).toBe("refused/gpt-4o");
  });

  test("a stream is, before its first byte", async () => {
    const { openai } = fixture.vendors;
    openai.next(unavailable(openai), openai.resets(), openai.says({ text: ["a", "b"] }));
    const answer = await call(fixture, { dialect: "openai", model: "alone/gpt", stream: true });
    expect(answer.status).toBe(200);
    expect(answer.headers["x-svc-retries"]).toBe("2");
    expect(textOf("openai", answer.text)).toBe("ab");
    expect(answer.text).toContain("data: [DONE]");
  });

  test("a stream is not, once a byte of it was sent", async () => {
    const { openai } = fixture.vendors;
    const gate = new Gate();
    const here = { before: "content", afterContent: 1 } as const;
    openai.next(
      openai.says({ text: ["a", "b"], hold: { gate, ...here }, cut: { how: "reset", ...here } }),
    );
    const target = { port: fixture.stack.port, token: fixture.token };
    const exchange = begin(target, {
      dialect: "openai",
      model: "openai/gpt-4o-mini",
      stream: true,
    });
    expect((await exchange.response).statusCode).toBe(200);
    await gate.reached;
    gate.open();
    await exchange.answer.catch(() => "broken");
    await fixture.stack.idle();
    expect(openai.requests).toHaveLength(1);
    expect(fixture.vendors.anthropic.requests).toHaveLength(0);
  });
});

describe("how long an attempt waits", () => {
  const gap = (requests: readonly Recorded[], i = 1): number =>
    (requests[i]?.at ?? 0) - (requests[i - 1]?.at ?? 0);

  test.each([
    ["retry-after-ms", () => ({ "retry-after-ms": "300" }), 300],
    ["retry-after in seconds", () => ({ "retry-after": "1" }), 1000],
    // A date has whole seconds: two ahead is more than one.
    [
      "retry-after as a date",
      () => ({ "retry-after": new Date(Date.now() + 2_000).toUTCString() }),
      950,
    ],
    [
      "retry-after-ms before retry-after",
      () => ({ "retry-after-ms": "300", "retry-after": "3600" }),
      300,
    ],
  ])("%s", async (_name, headers, least) => {
    const { openai } = fixture.vendors;
    openai.next((request, response) =>
      openai.fails({ status: 429, message: "wait", headers: headers() })(request, response),
    );
    openai.always(openai.says({ text: ["Now"] }));
    const answer = await call(fixture, { dialect: "openai", model: "alone/gpt" });
    expect(answer.status).toBe(200);
    expect(openai.requests).toHaveLength(2);
    expect(gap(openai.requests)).toBeGreaterThanOrEqual(least);
  });

  test("as the latest attempt says, not the first", async () => {
    const { openai } = fixture.vendors;
    openai.next(
      openai.fails({ status: 429, message: "wait", headers: { "retry-after-ms": "100" } }),
      openai.fails({ status: 503, message: "wait longer", headers: { "retry-after-ms": "400" } }),
      openai.says({ text: ["Now"] }),
    );
    const answer = await call(fixture, { dialect: "openai", model: "alone/gpt" });
    expect(answer.status).toBe(200);
    expect(gap(openai.requests, 1)).toBeGreaterThanOrEqual(100);
    expect(gap(openai.requests, 2)).toBeGreaterThanOrEqual(400);
  });

  test("a wait beyond the cap is not waited: the next provider is asked at once", async () => {
    const { openai, anthropic } = fixture.vendors;
    openai.always(
      openai.fails({ status: 429, message: "tomorrow", headers: { "retry-after": "86400" } }),
    );
    anthropic.always(anthropic.says({ text: ["Here"] }));
    const answer = await call(fixture, { dialect: "openai", model: "openai/gpt-4o-mini" });
    expect(answer.status).toBe(200);
    expect(answer.headers["x-svc-retries"]).toBe("1");
    expect(openai.requests).toHaveLength(1);
  });

  test("a wait beyond the cap with no provider left is the caller's to wait", async () => {
    const { openai } = fixture.vendors;
    openai.always(
      openai.fails({
        status: 429,
        message: "come back tomorrow",
        headers: { "retry-after": "3600" },
      }),
    );
    const answer = await call(fixture, { dialect: "openai", model: "alone/gpt" });
    expect(answer.status).toBe(429);
    expect(Number(answer.headers["retry-after"])).toBe(3600);
    expect(answer.headers["x-svc-retries"]).toBe("0");
    expect(openai.requests).toHaveLength(1);
    // Envoy dropped the provider's body when it began the retry: see docs/decisions, retries
    // through an internal listener.
    expect(answer.message).toContain("3600 seconds");
  });

  test("the wait is no part of the next attempt's time", async () => {
    const { openai } = fixture.vendors;
    openai.next(
      openai.fails({ status: 503, message: "wait", headers: { "retry-after-ms": "600" } }),
      openai.says({ text: ["Now"] }),
    );
    const answer = await call(fixture, { dialect: "openai", model: "hasty/gpt" });
    expect(answer.status).toBe(200);
    expect(answer.headers["x-svc-retries"]).toBe("1");
    expect(openai.requests).toHaveLength(2);
  });
});

describe("the time to the first byte", () => {
  test("an attempt that says nothing is given up, and cancelled", async () => {
    const { openai } = fixture.vendors;
    openai.next(openai.hangs(), openai.says({ text: ["Now"] }));
    const answer = await call(fixture, { dialect: "openai", model: "hasty/gpt" });
    expect(answer.status).toBe(200);
    expect(answer.headers["x-svc-retries"]).toBe("1");
    expect(await openai.requests[0]?.closed).toBe("cancelled");
  });

  test("an attempt at the fallback has the fallback's own time", async () => {
    const { openai, anthropic } = fixture.vendors;
    const gate = new Gate();
    openai.always(openai.hangs());
    anthropic.always(async (request, response) => {
      await gate.pass();
      await anthropic.says({ text: ["Slow but sure"] })(request, response);
    });
    const slow = call(fixture, { dialect: "openai", model: "hasty-first/gpt" });
    await gate.reached;
    // Meanwhile more time passes than the first provider's timeouts: two of its attempts, in
    // sequence.
    openai.reset();
    openai.always(openai.hangs());
    await call(fixture, { dialect: "openai", model: "hasty/gpt" });
    gate.open();
    const answer = await slow;
    expect(answer.status).toBe(200);
    expect(textOf("openai", answer.text)).toBe("Slow but sure");
    expect(anthropic.requests).toHaveLength(1);
  });

  test("all attempts silent: 504", async () => {
    const { openai } = fixture.vendors;
    openai.always(openai.hangs());
    const answer = await call(fixture, { dialect: "openai", model: "hasty/gpt" });
    expect(answer.status).toBe(504);
    expect(answer.text).toContain('"upstream_timeout"');
    expect(answer.headers["x-svc-retries"]).toBe("2");
    expect(openai.requests).toHaveLength(3);
  });

  test("does not end a stream that has begun", async () => {
    const { openai } = fixture.vendors;
    const gate = new Gate();
    openai.next(
      openai.says({ text: ["a", "b"], hold: { gate, before: "content", afterContent: 1 } }),
    );
    const slow = call(fixture, { dialect: "openai", model: "hasty/gpt", stream: true });
    await gate.reached;
    openai.always(openai.hangs());
    await call(fixture, { dialect: "openai", model: "hasty/gpt" });
    gate.open();
    const answer = await slow;
    expect(textOf("openai", answer.text)).toBe("ab");
    expect(answer.text).toContain("[DONE]");
  });
});

describe("when nothing helps", () => {
  test.each(DIALECTS)(
    "the last upstream's status and message, in the dialect of %s",
    async (dialect) => {
      const model = `${dialect}/${MODELS[dialect]}`;
      for (const name of DIALECTS) {
        const vendor = fixture.vendors[name];
        vendor.always(
          vendor.fails({
            status: name === NEXT[NEXT[dialect]] ? 502 : 503,
            message: `${name} is down`,
          }),
        );
      }
      const answer = await call(fixture, { dialect, model });
      const last = NEXT[NEXT[dialect]];
      expect(answer.status).toBe(502);
      expect(answer.message).toContain(`${last} is down`);
      expect(answer.headers["x-svc-retries"]).toBe("8");
      expect(answer.headers["x-svc-fell-back-from"]).toBe(model);
      expect(answer.headers["x-svc-model-id"]).toBe(`${last}/${MODELS[last]}`);
      expect(answer.headers["x-svc-call-id"]).toMatch(/^[0-9a-f-]{32,36}$/);
      for (const name of DIALECTS) expect(fixture.vendors[name].requests).toHaveLength(3);
      const body = JSON.parse(answer.text) as Record<string, unknown>;
      if (dialect === "anthropic")
        expect(body).toMatchObject({ type: "error", error: { type: "api_error" } });
      if (dialect === "gemini")
        expect(body).toMatchObject({ error: { code: 502, status: "UNAVAILABLE" } });
      if (dialect === "openai") expect(body).toMatchObject({ error: { type: "server_error" } });
    },
  );

  test.each(DIALECTS)("529 stays 529 for a caller in the dialect of %s", async (dialect) => {
    const { anthropic } = fixture.vendors;
    anthropic.always(anthropic.fails({ status: 529, message: "Overloaded" }));
    const answer = await call(fixture, { dialect, model: "alone-anthropic/claude" });
    expect(answer.status).toBe(529);
    expect(answer.message).toContain("Overloaded");
    expect(anthropic.requests).toHaveLength(3);
  });

  test("the last answer's retry-after reaches the caller", async () => {
    const { openai } = fixture.vendors;
    openai.next(unavailable(openai), unavailable(openai));
    openai.always(
      openai.fails({ status: 429, message: "slow down", headers: { "retry-after": "7" } }),
    );
    const answer = await call(fixture, { dialect: "anthropic", model: "alone/gpt" });
    expect(answer.status).toBe(429);
    expect(answer.headers["retry-after"]).toBe("7");
    expect(answer.headers["x-svc-retries"]).toBe("2");
  });

  test("every attempt of a long chain is made", async () => {
    for (const name of DIALECTS) fixture.vendors[name].always(unavailable(fixture.vendors[name]));
    const answer = await call(fixture, { dialect: "openai", model: "many/gpt" });
    expect(answer.status).toBe(503);
    const total = DIALECTS.reduce((sum, name) => sum + fixture.vendors[name].requests.length, 0);
    expect(total).toBe(30);
    expect(answer.headers["x-svc-retries"]).toBe("29");
  });
});

test("a client that leaves while an attempt waits stops the attempts", async () => {
  const { openai } = fixture.vendors;
  openai.always((request, response) => {
    const probe = request.body.includes("probe");
    if (probe && openai.requests.filter((other) => other.body.includes("probe")).length > 1) {
      return openai.says({ text: ["Now"] })(request, response);
    }
    return openai.fails({
      status: 503,
      message: "wait",
      headers: { "retry-after-ms": probe ? "1200" : "600" },
    })(request, response);
  });
  const target = { port: fixture.stack.port, token: fixture.token };
  const leaving = begin(target, { dialect: "openai", model: "patient/gpt", text: "leaver" });
  const first = await openai.request(0);
  await first.closed;
  const probe = begin(target, { dialect: "openai", model: "patient/gpt", text: "probe" });
  leaving.leave();
  await until(async () => (await fixture.stack.status()).activeCalls === 1, {
    what: "the leaver's call to end",
  });
  // The probe's second attempt is later than the disconnected client's would be.
  expect((await probe.answer).status).toBe(200);
  expect(openai.requests.filter((request) => request.body.includes("leaver"))).toHaveLength(1);
});
