/** Guards that scan answers. */
import { describe, expect, test } from "vitest";
import type { ClassifierVerdict } from "../../guard/classifier-client.ts";
import { guardPolicy, HUNG, judged } from "../../guard/testing.ts";
import { settled } from "../../platform/testing.ts";
import type { GuardPolicy } from "../../policy/snapshot.ts";
import type { Request, Trip } from "../testing.ts";
import { GuardedGateway, PATTERN } from "../testing-guard.ts";
import { ANSWERS, EVENT_STREAM, STREAMS } from "../testing-samples.ts";

type Name = keyof typeof ANSWERS;

const ENFORCED = "GUARD.VIOLATION_ENFORCE";
const AUDITED = "GUARD.VIOLATION_AUDIT";
const ONLY_ANSWERS = { prompts: false, responses: true, toolResults: "none" } as const;
const guard = (more: Partial<GuardPolicy> = {}): GuardPolicy =>
  guardPolicy({ scan: ONLY_ANSWERS, ...more });

const STREAMED = "streamGenerateContent?alt=sse";

function requestOf(client: Name, upstream: Name, stream: boolean): Request {
  const messages = [{ role: "user", content: "hello" }];
  switch (client) {
    case "openai":
      return {
        body: {
          model: `${upstream}/m`,
          messages,
          ...(stream && { stream, stream_options: { include_usage: true } }),
        },
      };
    case "anthropic":
      return {
        path: "/v1/messages",
        body: { model: `${upstream}/m`, messages, max_tokens: 10, stream },
      };
    case "gemini":
      return {
        path: `/v1beta/models/${upstream}%2Fm:${stream ? STREAMED : "generateContent"}`,
        body: { contents: [{ role: "user", parts: [{ text: "hello" }] }] },
      };
  }
}

async function ask(
  shared: GuardedGateway,
  client: Name,
  upstream: Name,
  stream = false,
): Promise<Trip> {
  const trip = shared.trip().request(requestOf(client, upstream, stream));
  await settled();
  return trip.responseHeaders(200, stream ? EVENT_STREAM : { "content-type": "application/json" });
}

const answerOf = (upstream: Name, text: string): string =>
  JSON.stringify(ANSWERS[upstream]).replace("the-answer", text);

const NAMES = ["openai", "anthropic", "gemini"] as const;
const PAIRS = NAMES.flatMap((client) => NAMES.map((upstream) => ({ client, upstream })));

describe.each(PAIRS)("$upstream answers $client", ({ client, upstream }) => {
  test("enforce: the answer is withheld; its usage counts", async () => {
    const shared = new GuardedGateway(guard());
    const trip = await ask(shared, client, upstream);
    trip.responseBody(answerOf(upstream, `Now ${PATTERN}.`));
    await settled();
    const { status, headers, body } = trip.exchange.responded;
    expect(status).toBe(403);
    expect(body).not.toContain(PATTERN);
    expect(JSON.parse(body)).toMatchObject({
      error: {},
      detail: {
        code: "guard_violation",
        where: "response",
        tool: "",
        label: "injection",
        score: 0.9,
      },
    });
    expect(Object.fromEntries(headers)).toMatchObject({
      "x-svc-input-tokens": "100",
      "x-svc-output-tokens": "7",
      "x-svc-cost-usd": "0.00016",
      "content-type": "application/json",
    });
    expect(shared.audit.ofType(ENFORCED)).toMatchObject([{ where: "response", call: "call-1" }]);
    expect(shared.audit.ofType("LLM_CALL")).toMatchObject([
      { status: 403, code: "guard_violation" },
    ]);
    expect(shared.calls.size).toBe(0);
    expect(shared.logText.join("")).not.toContain(PATTERN);
    expect(shared.defects).toEqual([]);
  });

  test("audit: the answer is sent, and recorded before the call is", async () => {
    const shared = new GuardedGateway(guard({ enforcement: "audit" }));
    const trip = await ask(shared, client, upstream);
    trip.responseBody(answerOf(upstream, PATTERN));
    await settled();
    expect(trip.exchange.last).toMatchObject({ kind: "proceed", phase: "response_body" });
    expect(shared.audit.events.map(({ type }) => type)).toEqual([AUDITED, "LLM_CALL"]);
    expect(shared.audit.ofType("LLM_CALL")).toMatchObject([{ status: 200 }]);
  });

  test("streamed: it passes, and a finding is recorded, also of a guard that enforces", async () => {
    const shared = new GuardedGateway(guard());
    const trip = await ask(shared, client, upstream, true);
    const half = Math.floor(PATTERN.length / 2);
    const events = STREAMS[upstream].map((event) =>
      event
        .replace("the-answer", PATTERN)
        .replace("the-", PATTERN.slice(0, half))
        .replace('"answer"', `"${PATTERN.slice(half)}"`),
    );
    for (const [index, event] of events.entries())
      trip.responseBody(event, index === events.length - 1);
    await settled();
    expect(trip.exchange.last).toMatchObject({ kind: "proceed", phase: "response_body" });
    expect(shared.audit.ofType(AUDITED)).toMatchObject([{ where: "response", payload: PATTERN }]);
    expect(shared.audit.ofType(ENFORCED)).toEqual([]);
    expect(shared.audit.ofType("LLM_CALL")).toMatchObject([{ status: 200 }]);
    expect(shared.calls.size).toBe(0);
    expect(shared.defects).toEqual([]);
  });
});

const openai = (shared: GuardedGateway, stream = false): Promise<Trip> =>
  ask(shared, "openai", "openai", stream);

test("an answer that nobody scans passes at once", async () => {
  const shared = new GuardedGateway(
    guardPolicy({ scan: { prompts: true, responses: false, toolResults: "all" } }),
  );
  const trip = await openai(shared);
  trip.responseBody(answerOf("openai", PATTERN));
  expect(trip.exchange.last).toMatchObject({ kind: "proceed", phase: "response_body" });
  expect(shared.asked).toEqual(["hello"]);
});

test("thinking and arguments of calls are part of the answer", async () => {
  const shared = new GuardedGateway(guard());
  for (const message of [
    { content: null, reasoning_content: PATTERN },
    {
      content: null,
      tool_calls: [
        { id: "1", type: "function", function: { name: "f", arguments: `{"a":"${PATTERN}"}` } },
      ],
    },
  ]) {
    const trip = await openai(shared);
    trip.responseBody({
      ...ANSWERS.openai,
      choices: [{ index: 0, message: { role: "assistant", ...message }, finish_reason: "stop" }],
    });
    await settled();
    expect(trip.exchange.responded.status).toBe(403);
  }
});

test("counts of tokens and embeddings are not scanned", async () => {
  const shared = new GuardedGateway(guard());
  const trip = shared
    .trip()
    .request({ path: "/v1/messages/count_tokens", body: { model: "anthropic/m", messages: [] } });
  await settled();
  trip.responseHeaders(200).responseBody({ input_tokens: 5, content: PATTERN });
  expect(trip.exchange.last).toMatchObject({ kind: "proceed" });
  expect(shared.asked).toEqual([]);
});

test("an error of the provider is not scanned", async () => {
  const shared = new GuardedGateway(guard());
  const trip = shared.trip().request(requestOf("openai", "openai", false));
  await settled();
  trip.responseHeaders(400).responseBody({ error: { message: PATTERN } });
  expect(trip.exchange.proceeded.body?.toString()).toContain(PATTERN);
  expect(shared.asked).toEqual([]);
});

describe("while the answer is scanned", () => {
  async function waiting(): Promise<{
    readonly shared: GuardedGateway;
    readonly trip: Trip;
    readonly answer: (verdict: ClassifierVerdict) => Promise<void>;
  }> {
    const shared = new GuardedGateway(guard());
    const { promise, resolve } = Promise.withResolvers<ClassifierVerdict>();
    shared.classify = () => promise;
    const trip = await openai(shared);
    trip.responseBody(answerOf("openai", PATTERN));
    await settled();
    return {
      shared,
      trip,
      answer: async (verdict) => {
        resolve(verdict);
        await settled();
      },
    };
  }

  test("nothing of it is sent", async () => {
    const { trip, shared, answer } = await waiting();
    expect(trip.exchange.last).toMatchObject({ kind: "proceed", phase: "response_headers" });
    expect(shared.calls.size).toBe(1);
    await answer(judged(0));
    expect(trip.exchange.last).toMatchObject({ kind: "proceed", phase: "response_body" });
    expect(shared.calls.size).toBe(0);
  });

  test("the guard's time ends the wait, and the answer is sent", async () => {
    const { trip, shared } = await waiting();
    await shared.clock.advanceAndSettle(1_000);
    expect(trip.exchange.last).toMatchObject({ kind: "proceed", phase: "response_body" });
    expect(shared.audit.ofType("GUARD.UNAVAILABLE")).toHaveLength(1);
  });

  test.each([
    ["benign", judged(0)],
    ["a finding", judged(1)],
    ["none", HUNG],
  ])(
    "a client that disconnects: the call is settled once, with its usage; verdict: %s",
    async (_, verdict) => {
      const { trip, shared, answer } = await waiting();
      trip.closed();
      const answers = trip.exchange.answers.length;
      expect(shared.calls.size).toBe(0);
      await answer(verdict);
      expect(trip.exchange.answers).toHaveLength(answers);
      expect(shared.audit.ofType("LLM_CALL")).toMatchObject([
        { end: "disconnected", output_tokens: 7 },
      ]);
      expect(shared.log.filter(({ end }) => end !== undefined)).toHaveLength(1);
      expect(shared.defects).toEqual([]);
    },
  );

  test("a client that disconnects after the verdict changes nothing", async () => {
    const { trip, shared, answer } = await waiting();
    await answer(judged(1));
    trip.closed();
    await settled();
    expect(shared.audit.ofType("LLM_CALL")).toMatchObject([{ status: 403 }]);
  });
});

describe("a stream that is abandoned", () => {
  test("what was forwarded is scanned, once", async () => {
    const shared = new GuardedGateway(guard());
    const trip = await openai(shared, true);
    const [first = "", second = ""] = STREAMS.openai;
    trip.responseBody(first, false).responseBody(second.replace("the-", `${PATTERN} `), false);
    trip.closed();
    await settled();
    trip.closed();
    await settled();
    expect(shared.audit.ofType(AUDITED)).toMatchObject([
      { where: "response", payload: `${PATTERN} ` },
    ]);
    expect(shared.audit.ofType("LLM_CALL")).toHaveLength(1);
    expect(shared.asked).toHaveLength(1);
    expect(shared.defects).toEqual([]);
  });

  test("before its first event: nothing is asked", async () => {
    const shared = new GuardedGateway(guard());
    const trip = await openai(shared, true);
    trip.closed();
    await settled();
    expect(shared.asked).toEqual([]);
    expect(shared.audit.ofType("LLM_CALL")).toHaveLength(1);
  });
});

test("the last event of a stream is scanned, also without the line end behind it", async () => {
  const shared = new GuardedGateway(guard());
  const trip = await openai(shared, true);
  const [first = "", second = ""] = STREAMS.openai;
  trip.responseBody(first, false);
  trip.responseBody(second.replace("the-", PATTERN).trimEnd(), true);
  await settled();
  expect(shared.audit.ofType(AUDITED)).toHaveLength(1);
});

test("a gateway that ends waits for scans of answers that were forwarded", async () => {
  const shared = new GuardedGateway(guard());
  const { promise, resolve } = Promise.withResolvers<ClassifierVerdict>();
  shared.classify = () => promise;
  const trip = await openai(shared, true);
  for (const [index, event] of STREAMS.openai.entries()) {
    trip.responseBody(event, index === STREAMS.openai.length - 1);
  }
  expect(shared.calls.size).toBe(0);
  expect(shared.calls.underWay).toBe(1);
  resolve(judged(1));
  await settled();
  expect(shared.calls.underWay).toBe(0);
  expect(shared.audit.ofType(AUDITED)).toHaveLength(1);
});
