import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import { Gateway, provider, TOKEN, type Trip } from "../testing.ts";
import { ANSWERS, chat, EVENT_STREAM, STREAMS } from "../testing-samples.ts";

type Name = keyof typeof ANSWERS;

const NAMES: readonly Name[] = ["openai", "anthropic", "gemini"];
const PAIRS = NAMES.flatMap((client) => NAMES.map((upstream) => ({ client, upstream })));
const JSON_TYPE = { "content-type": "application/json" };

function gateway(): Gateway {
  return new Gateway(provider("openai"), provider("anthropic"), provider("gemini"));
}

/** A request of `client` for a model of `upstream`, under way. */
function ask(shared: Gateway, client: Name, upstream: Name, stream = false): Trip {
  const trip = shared.trip();
  switch (client) {
    case "openai":
      return trip.request({
        body: chat(
          `${upstream}/m`,
          stream ? { stream, stream_options: { include_usage: true } } : {},
        ),
      });
    case "anthropic":
      return trip.request({
        path: "/v1/messages",
        body: { ...chat(`${upstream}/m`), max_tokens: 10, stream },
      });
    case "gemini": {
      const method = stream ? "streamGenerateContent?alt=sse" : "generateContent";
      const path = `/v1beta/models/${upstream}%2Fm:${method}`;
      return trip.request({
        path,
        body: { contents: [{ role: "user", parts: [{ text: "the-prompt" }] }] },
      });
    }
  }
}

const totals = (trip: Trip): Map<string, string> => new Map(trip.exchange.proceeded.headers?.set);

/** Token counts and cost of every good answer: 80 * $1 + 20 * $0.5 + 7 * $10 per million. */
const USED = {
  "x-svc-input-tokens": "100",
  "x-svc-cached-input-tokens": "20",
  "x-svc-output-tokens": "7",
  "x-svc-cost-usd": "0.00016",
};

describe("a whole answer", () => {
  test.each(PAIRS)("$upstream answers $client", async ({ client, upstream }) => {
    const shared = gateway();
    const trip = ask(shared, client, upstream);
    shared.clock.advance(250);
    trip.responseHeaders(200, { ...JSON_TYPE, "x-svc-cost-usd": "forged" });
    expect(trip.exchange.proceeded.responseBodyMode).toBe("buffered");
    expect(trip.exchange.proceeded.headers).toEqual({ remove: ["x-svc-cost-usd"] });
    trip.responseBody(ANSWERS[upstream]);
    expect(Object.fromEntries(totals(trip))).toMatchObject({
      ...USED,
      "x-svc-duration-ms": "250",
      "x-svc-call-id": "call-1",
      "x-svc-model-id": `${upstream}/m`,
      "x-svc-retries": "0",
    });
    const { body } = trip.exchange.proceeded;
    if (client === upstream) expect(body).toBeUndefined();
    else {
      expect(totals(trip).get("content-length")).toBe(String(body?.length));
      expect(String(body)).toContain("the-answer");
    }
    expect(shared.log).toMatchObject([
      {
        status: 200,
        end: "completed",
        usage: "exact",
        inputTokens: 100,
        outputTokens: 7,
        costUsd: "0.00016",
        durationMs: 250,
      },
    ]);
    trip.closed();
    expect(shared.log).toHaveLength(1);
    expect(shared.calls.size).toBe(0);
    expect(await shared.metric("svc_llm_requests_total")).toEqual([
      {
        value: 1,
        labels: {
          workload: "default/tester",
          model: "m",
          provider: upstream,
          status: "200",
          end: "completed",
        },
      },
    ]);
  });

  test.each([
    ["gzip", gzipSync],
    ["x-gzip", gzipSync],
    ["GZIP", gzipSync],
    ["br", brotliCompressSync],
    ["deflate", deflateSync],
    ["identity", (bytes: Buffer) => bytes],
  ] as const)("in %s is read, and given on plain where it is translated", (encoding, compress) => {
    for (const client of ["openai", "anthropic"] as const) {
      const shared = gateway();
      const trip = ask(shared, client, "openai").responseHeaders(200, {
        ...JSON_TYPE,
        "content-encoding": encoding,
      });
      trip.responseBody(compress(Buffer.from(JSON.stringify(ANSWERS.openai))));
      expect(Object.fromEntries(totals(trip))).toMatchObject(USED);
      const { body, headers } = trip.exchange.proceeded;
      if (body !== undefined) {
        expect(JSON.parse(String(body))).toBeDefined();
        expect(headers?.remove).toContain("content-encoding");
      } else expect(encoding === "identity" && client === "openai").toBe(true);
    }
  });

  test.each([
    ["gzip", "no gzip"],
    ["br", "no brotli"],
    ["zstd", "unknown here"],
    ["gzip", gzipSync("x".repeat(100)).subarray(0, 20)],
  ])("in broken %s is our error, billed by an estimate", (encoding, bytes) => {
    const shared = gateway();
    const trip = ask(shared, "openai", "openai")
      .responseHeaders(200, { ...JSON_TYPE, "content-encoding": encoding })
      .responseBody(bytes);
    expect(trip.exchange.responded.status).toBe(502);
    expect(JSON.parse(trip.exchange.responded.body)).toMatchObject({
      error: { code: "upstream_invalid" },
    });
    expect(shared.log).toMatchObject([
      { status: 502, end: "failed", code: "upstream_invalid", usage: "estimated" },
    ]);
    expect(trip.closed().exchange.answers).toHaveLength(3 + 1);
  });

  test("a bomb is not unpacked", () => {
    const shared = gateway();
    const bomb = gzipSync(Buffer.alloc(65 * 1024 * 1024));
    const trip = ask(shared, "openai", "openai")
      .responseHeaders(200, { ...JSON_TYPE, "content-encoding": "gzip" })
      .responseBody(bomb);
    expect(trip.exchange.responded.status).toBe(502);
  });

  test.each([
    ["no JSON", "openai", "<html>", "estimated"],
    ["nothing of the dialect", "anthropic", "{}", "estimated"],
    [
      "usage without an answer",
      "anthropic",
      JSON.stringify({ usage: ANSWERS.anthropic.usage }),
      "exact",
    ],
  ] as const)("with %s is our error and is billed", (_name, upstream, body, usage) => {
    const shared = gateway();
    const trip = ask(shared, "openai", upstream).responseHeaders(200).responseBody(body);
    const { status, headers, body: text } = trip.exchange.responded;
    expect(status).toBe(502);
    expect(headers.get("x-svc-model-id")).toBe(`${upstream}/m`);
    expect(JSON.parse(text)).toMatchObject({ error: { code: "upstream_invalid" } });
    expect(shared.log).toMatchObject([{ end: "failed", code: "upstream_invalid", usage }]);
  });

  test.each<[string, boolean, Record<string, string>, boolean]>([
    ["a stream that was not asked for", false, EVENT_STREAM, false],
    ["no stream where one was asked", true, JSON_TYPE, false],
    ["no content type where a stream was asked", true, {}, false],
    ["an empty answer", false, JSON_TYPE, true],
    ["an empty stream", true, EVENT_STREAM, true],
    ["a compressed stream", true, { ...EVENT_STREAM, "content-encoding": "gzip" }, false],
  ])("%s is our error at once", (_name, stream, headers, end) => {
    const shared = gateway();
    const trip = ask(shared, "openai", "openai", stream).responseHeaders(200, headers, end);
    expect(trip.exchange.responded.status).toBe(502);
    expect(JSON.parse(trip.exchange.responded.body)).toMatchObject({
      error: { code: "upstream_invalid" },
    });
    expect(shared.log).toMatchObject([{ status: 502, end: "failed", code: "upstream_invalid" }]);
    trip.closed();
    expect(shared.log).toHaveLength(1);
  });

  test("a content type is read without its parameters and case", () => {
    const trip = ask(gateway(), "openai", "openai", true).responseHeaders(200, {
      "content-type": "Text/Event-Stream; charset=utf-8",
    });
    expect(trip.exchange.proceeded.responseBodyMode).toBe("streamed");
  });
});

describe("a stream", () => {
  /** Feeds the events, the last one together with the end. */
  function feed(trip: Trip, events: readonly string[]): string {
    const shown: string[] = [];
    events.forEach((event, i) => {
      trip.responseBody(event, i === events.length - 1);
      const { last } = trip.exchange;
      shown.push(last.kind === "proceed" ? String(last.reply.body) : event);
    });
    return shown.join("");
  }

  test.each(PAIRS)("of $upstream to $client: totals at its end", ({ client, upstream }) => {
    const shared = gateway();
    const trip = ask(shared, client, upstream, true).responseHeaders(200, {
      ...EVENT_STREAM,
      "content-length": "9",
    });
    const { responseBodyMode, headers } = trip.exchange.proceeded;
    expect(responseBodyMode).toBe("streamed");
    expect(headers?.remove).toContain("content-length");
    const text = feed(trip, STREAMS[upstream]);
    expect(text).toMatch(/the-.*answer/s);
    expect(shared.log).toMatchObject([
      {
        status: 200,
        end: "completed",
        usage: "exact",
        inputTokens: 100,
        outputTokens: 7,
        stream: true,
      },
    ]);
    const comments = text.split("\n").filter((line) => line.startsWith(":"));
    if (client === "gemini") {
      expect(comments).toEqual([]);
      const last = text.trimEnd().split("data: ").at(-1) ?? "";
      expect((JSON.parse(last) as { svc: unknown }).svc).toEqual({
        "x-svc-input-tokens": "100",
        "x-svc-output-tokens": "7",
        "x-svc-duration-ms": "0",
        "x-svc-cached-input-tokens": "20",
        "x-svc-cost-usd": "0.00016",
      });
    } else {
      expect(comments).toEqual([
        ": x-svc-input-tokens=100 x-svc-output-tokens=7 x-svc-duration-ms=0 " +
          "x-svc-cached-input-tokens=20 x-svc-cost-usd=0.00016",
      ]);
      expect(text.endsWith(`${comments[0]}\n\n`)).toBe(true);
    }
    trip.closed();
    expect(shared.log).toHaveLength(1);
  });

  test("of the caller's own dialect passes as it came", () => {
    const trip = ask(gateway(), "anthropic", "anthropic", true).responseHeaders(200, EVENT_STREAM);
    trip.responseBody(STREAMS.anthropic[0], false);
    expect(trip.exchange.last).toEqual({ kind: "pass", phase: "response_body" });
  });

  test.each(["openai", "anthropic"] as const)(
    "of %s whose last event lacks its end: the totals do not touch it",
    (name) => {
      for (const cutTo of [1, 2]) {
        const shared = gateway();
        const trip = ask(shared, name, name, true).responseHeaders(200, EVENT_STREAM);
        const whole = STREAMS[name].join("");
        const text = feed(trip, [whole.slice(0, -cutTo)]);
        const lines = text.split("\n");
        expect(lines).toContain(
          name === "openai" ? "data: [DONE]" : 'data: {"type":"message_stop"}',
        );
        expect(lines.filter((line) => line.startsWith(": x-svc-input-tokens=100"))).toHaveLength(1);
        expect(shared.log).toMatchObject([{ end: "completed" }]);
      }
    },
  );

  test.each(PAIRS)(
    "of $upstream to $client, cut in the middle: an error the client sees, billed by what passed",
    ({ client, upstream }) => {
      const shared = gateway();
      const trip = ask(shared, client, upstream, true).responseHeaders(200, EVENT_STREAM);
      const events = STREAMS[upstream];
      const text = feed(trip, [...events.slice(0, upstream === "gemini" ? 1 : 3), ""]);
      expect(text).toContain("error");
      expect(shared.log).toMatchObject([
        { status: 200, end: "cut", code: "stream_interrupted", usage: "estimated" },
      ]);
      // Anthropic reports its input at the start: that part is exact.
      expect(shared.log[0]?.["inputTokens"] === 100).toBe(upstream === "anthropic");
    },
  );

  test.each(["openai", "anthropic"] as const)(
    "an event without end is not held without end: to %s",
    (client) => {
      const shared = gateway();
      const trip = ask(shared, client, "openai", true).responseHeaders(200, EVENT_STREAM);
      const part = Buffer.alloc(1024 * 1024, "x");
      trip.responseBody('data: "', false);
      for (let n = 0; n < 40 && trip.exchange.last.kind !== "fail"; n++) {
        trip.responseBody(part, false);
      }
      expect(trip.exchange.last.kind).toBe("fail");
      expect(shared.log).toMatchObject([{ end: "cut", code: "upstream_invalid" }]);
    },
  );

  test("an error event of the provider ends it: cut, with the provider's error", () => {
    const shared = gateway();
    const trip = ask(shared, "anthropic", "anthropic", true).responseHeaders(200, EVENT_STREAM);
    const error =
      "event: error\ndata: " +
      '{"type":"error","error":{"type":"overloaded_error","message":"busy"}}\n\n';
    const text = feed(trip, [STREAMS.anthropic[0] ?? "", error]);
    expect(text.match(/event: error/g)).toHaveLength(1);
    expect(shared.log).toMatchObject([{ end: "cut", code: "upstream_error" }]);
  });
});

describe("an error of the provider", () => {
  const BODIES = {
    openai: {
      error: {
        message: "slow down",
        type: "rate_limit_error",
        param: null,
        code: "rate_limit_exceeded",
      },
    },
    anthropic: { type: "error", error: { type: "rate_limit_error", message: "slow down" } },
    gemini: { error: { code: 429, message: "slow down", status: "RESOURCE_EXHAUSTED" } },
  };

  test.each(PAIRS)(
    "of $upstream to $client: its status and words, at no cost",
    ({ client, upstream }) => {
      const shared = gateway();
      const trip = ask(shared, client, upstream).responseHeaders(429, {
        ...JSON_TYPE,
        "retry-after": "7",
      });
      expect(trip.exchange.proceeded.headers?.remove ?? []).not.toContain("retry-after");
      trip.responseBody(BODIES[upstream]);
      const body = JSON.parse(String(trip.exchange.proceeded.body)) as {
        error: { message: string };
      };
      expect(body.error.message).toBe("slow down");
      expect(Object.keys(body).sort()).toEqual(Object.keys(BODIES[client]).sort());
      expect(totals(trip).get("x-svc-input-tokens")).toBe("0");
      expect(totals(trip).has("x-svc-cost-usd")).toBe(false);
      expect(shared.log).toMatchObject([
        { status: 429, end: "failed", code: "upstream_error", usage: "none" },
      ]);
    },
  );

  test.each([
    ["without a body", undefined, "status 503"],
    ["with a page", "<html>secret infrastructure</html>", "status 503"],
    ["with plain words", "try later", "try later"],
    ["with broken compression", Buffer.from("no gzip"), "status 503"],
  ])("%s", (_name, body, words) => {
    const shared = gateway();
    const trip = ask(shared, "anthropic", "openai");
    const compressed = Buffer.isBuffer(body) ? { "content-encoding": "gzip" } : {};
    trip.responseHeaders(503, { ...JSON_TYPE, ...compressed }, body === undefined);
    if (body !== undefined) trip.responseBody(body);
    const { last } = trip.exchange;
    const text =
      last.kind === "respond" ? String(last.reply.body) : String(trip.exchange.proceeded.body);
    expect(JSON.parse(text)).toMatchObject({ type: "error", error: { type: "overloaded_error" } });
    expect(text).toContain(words);
    expect(shared.log).toMatchObject([{ status: 503, end: "failed", usage: "none" }]);
  });

  test("compressed is read", () => {
    const trip = ask(gateway(), "openai", "openai").responseHeaders(400, {
      ...JSON_TYPE,
      "content-encoding": "gzip",
    });
    trip.responseBody(gzipSync(JSON.stringify({ error: { message: "no such thing" } })));
    expect(String(trip.exchange.proceeded.body)).toContain("no such thing");
    expect(trip.exchange.proceeded.headers?.remove).toContain("content-encoding");
  });

  test("to a stream that was asked for is a whole body", () => {
    const trip = ask(gateway(), "openai", "openai", true).responseHeaders(500);
    expect(trip.exchange.proceeded.responseBodyMode).toBe("buffered");
  });
});

describe("Envoy's own replies", () => {
  test.each([
    [413, "- request_payload_too_large", 413, "body_too_large"],
    [504, "UT upstream_response_timeout", 504, "upstream_timeout"],
    [503, "UF upstream_reset_before_response_started{connection_timeout}", 504, "upstream_timeout"],
    [
      503,
      "UF upstream_reset_before_response_started{connection_failure}",
      503,
      "upstream_unavailable",
    ],
    [503, "UH no_healthy_upstream", 503, "upstream_unavailable"],
  ])("%s %s", (status, local, shown, code) => {
    for (const client of NAMES) {
      const shared = gateway();
      const trip = ask(shared, client, "openai").responseHeaders(status, { "x-svc-local": local });
      expect(trip.exchange.responded.status).toBe(shown);
      expect(trip.exchange.responded.headers.get("x-svc-call-id")).toBe("call-1");
      expect(trip.exchange.responded.body.toLowerCase()).toContain(code);
      expect(trip.exchange.responded.body).not.toContain("reset_before");
      expect(shared.log).toMatchObject([{ status: shown, end: "failed", code, usage: "none" }]);
      trip.closed();
      expect(shared.log).toHaveLength(1);
    }
  });
});

describe("a client that leaves", () => {
  test.each<[string, (trip: Trip) => void, object]>([
    [
      "before the first byte: an upstream may be at work",
      () => undefined,
      { status: 499, usage: "estimated", outputTokens: 0 },
    ],
    [
      "after the headers",
      (trip) => trip.responseHeaders(200, EVENT_STREAM),
      { status: 200, usage: "estimated", outputTokens: 0 },
    ],
    [
      "in the middle",
      (trip) =>
        trip
          .responseHeaders(200, EVENT_STREAM)
          .responseBody(STREAMS.openai.slice(0, 3).join(""), false),
      { status: 200, usage: "estimated", outputTokens: 4 },
    ],
    [
      "after the usage, before the end",
      (trip) =>
        trip
          .responseHeaders(200, EVENT_STREAM)
          .responseBody(STREAMS.openai.slice(0, 5).join(""), false),
      { status: 200, usage: "exact", inputTokens: 100, outputTokens: 7 },
    ],
  ])("%s", (_name, phases, line) => {
    const shared = gateway();
    const trip = ask(shared, "openai", "openai", true);
    phases(trip);
    expect(shared.log).toEqual([]);
    const answers = trip.exchange.answers.length;
    trip.closed().closed();
    expect(shared.log).toMatchObject([{ end: "disconnected", ...line }]);
    expect(trip.exchange.answers).toHaveLength(answers);
    expect(shared.calls.size).toBe(0);
  });

  test("what the provider said of its input at the start counts, its output by what passed", () => {
    const shared = gateway();
    const trip = ask(shared, "anthropic", "anthropic", true).responseHeaders(200, EVENT_STREAM);
    trip.responseBody(STREAMS.anthropic.slice(0, 3).join(""), false).closed();
    expect(shared.log).toMatchObject([{ usage: "estimated", inputTokens: 100, outputTokens: 4 }]);
  });

  test("after every attempt was refused: nothing was used", () => {
    const shared = gateway();
    const trip = ask(shared, "openai", "openai");
    trip.call().reportSentFailure({ status: 503, retryAfterMs: undefined, flags: "" });
    trip.closed();
    expect(shared.log).toMatchObject([{ status: 499, end: "disconnected", usage: "none" }]);
  });

  test("while an error's body comes", () => {
    const shared = gateway();
    ask(shared, "openai", "openai").responseHeaders(500).closed();
    expect(shared.log).toMatchObject([{ status: 500, end: "disconnected" }]);
  });

  test("before the call began leaves no trace", () => {
    const shared = gateway();
    shared.trip().closed();
    shared.trip().requestHeaders().closed();
    expect(shared.logText).toEqual([]);
    expect(shared.calls.size).toBe(0);
  });
});

describe("token counting costs nothing", () => {
  const count = (shared: Gateway): Trip =>
    shared.trip().request({ path: "/v1/messages/count_tokens", body: chat("anthropic/m") });

  test.each<[string, (trip: Trip) => void]>([
    ["when it is answered", (trip) => trip.responseHeaders(200).responseBody({ input_tokens: 3 })],
    ["when the answer is no JSON", (trip) => trip.responseHeaders(200).responseBody("<html>")],
    ["when the provider refuses", (trip) => trip.responseHeaders(400).responseBody("{}")],
    ["when the client leaves before the answer", () => undefined],
    ["when the client leaves in the middle", (trip) => trip.responseHeaders(200)],
  ])("%s", (_name, phases) => {
    const shared = gateway();
    const trip = count(shared);
    phases(trip);
    trip.closed();
    expect(shared.log).toMatchObject([{ operation: "count_tokens", usage: "none" }]);
    expect(shared.log[0]).not.toHaveProperty("costUsd");
  });

  test("of Gemini", () => {
    const shared = gateway();
    const trip = shared
      .trip()
      .request({ path: "/v1beta/models/gemini%2Fm:countTokens", body: { contents: [] } });
    trip.responseHeaders(200).responseBody({ totalTokens: 3 });
    expect(trip.exchange.proceeded.body).toBeUndefined();
    expect(shared.log).toMatchObject([{ usage: "none" }]);
  });
});

test("every order of phases settles once and never throws", () => {
  type Step = readonly [string, (trip: Trip) => void];
  const steps: readonly Step[] = [
    ["200", (trip) => trip.responseHeaders(200)],
    ["stream", (trip) => trip.responseHeaders(200, EVENT_STREAM)],
    ["500", (trip) => trip.responseHeaders(500)],
    ["local", (trip) => trip.responseHeaders(503, { "x-svc-local": "UF x" })],
    ["part", (trip) => trip.responseBody("data: {", false)],
    ["body", (trip) => trip.responseBody(ANSWERS.openai)],
    ["trailers", (trip) => trip.processor.phase({ kind: "response_trailers" })],
    ["closed", (trip) => trip.closed()],
  ];
  for (const first of steps) {
    for (const second of steps) {
      for (const third of steps) {
        const shared = gateway();
        const trip = ask(shared, "openai", "openai", first[0] === "stream");
        for (const [, step] of [first, second, third]) step(trip);
        trip.closed();
        const name = [first, second, third].map(([text]) => text).join(", ");
        expect(shared.log.length, name).toBe(1);
        expect(shared.calls.size, name).toBe(0);
      }
    }
  }
});

describe("nothing secret is told", () => {
  const SECRETS = [TOKEN, "sk-secret-", "the-prompt", "the-answer", "forwarded-cookie"];

  const ways: readonly (readonly [string, (trip: Trip) => void])[] = [
    ["a whole answer", (trip) => trip.responseHeaders(200).responseBody(ANSWERS.anthropic)],
    [
      "an error that holds the key",
      (trip) =>
        trip.responseHeaders(401).responseBody({
          type: "error",
          error: { type: "x", message: "bad key sk-ant-api03-abcdefghijklmnop" },
        }),
    ],
    ["an answer that is no JSON", (trip) => trip.responseHeaders(200).responseBody("the-answer")],
    ["nothing", () => undefined],
    [
      "a local reply",
      (trip) => trip.responseHeaders(503, { "x-svc-local": "UF connection_failure" }),
    ],
  ];

  test.each(ways)("%s", async (_name, way) => {
    const shared = gateway();
    const trip = shared
      .trip()
      .request({ headers: { cookie: "forwarded-cookie" }, body: chat("anthropic/m") });
    const call = trip.call();
    const shown = [
      JSON.stringify(call.target),
      JSON.stringify(call.request.permit),
      inspect(call.target, { depth: 9 }),
    ];
    way(trip);
    trip.closed();
    const told = [...shared.logText, await shared.registry.metrics(), ...shown].join("\n");
    expect(shared.logText).toHaveLength(1);
    for (const secret of SECRETS) expect(told).not.toContain(secret);
    const clients = trip.exchange.answers
      .slice(2)
      .map((answer) =>
        JSON.stringify(answer, (_key, value: unknown) =>
          isBytes(value) ? Buffer.from(value.data).toString() : value,
        ),
      );
    for (const secret of [TOKEN, "sk-secret-", "sk-ant-api03-abcdefghijklmnop"])
      expect(clients.join("\n")).not.toContain(secret);
  });

  function isBytes(value: unknown): value is { readonly data: number[] } {
    return (
      typeof value === "object" && value !== null && (value as { type?: unknown }).type === "Buffer"
    );
  }

  test("a refusal does not show the key", () => {
    const shared = gateway();
    const trip = shared.trip().requestHeaders({
      path: "/v1beta/models/x:generateContent?key=svcw_wrong-key",
      headers: { authorization: "" },
    });
    expect(JSON.stringify(trip.exchange.answers)).not.toContain("svcw_wrong-key");
    expect(shared.logText.join("")).not.toContain("svcw_wrong-key");
  });
});
