/** The guard's stage, and the guard of answers. */
import { describe, expect, test } from "vitest";
import type { ClassifierVerdict } from "../../guard/classifier-client.ts";
import { settled } from "../../platform/testing.ts";
import type { GuardPolicy } from "../../policy/snapshot.ts";
import { hashKey } from "../../access/credentials.ts";
import { agent, BENIGN, Gateway, NO_LIMITS, provider, TOKEN, type Trip } from "../testing.ts";

const EVIL: ClassifierVerdict = {
  kind: "scores",
  scores: { benign: 0, injection: 0.9, jailbreak: 0 },
};

const SCAN = { prompts: true, responses: false, toolResults: "none" } as const;

const guardWith = (changes: Partial<GuardPolicy>): GuardPolicy => ({
  binding: "strict",
  classifier: {
    id: "1",
    type: "stub",
    protocol: "classify",
    url: "http://classifier/classify",
    model: undefined,
    header: undefined,
    problem: undefined,
  },
  thresholds: { injection: 0.5, jailbreak: 0.5 },
  enforcement: "enforce",
  timeoutMs: 1_000,
  maxPayloadChars: 100,
  scan: SCAN,
  ...changes,
});

/** A gateway whose agent has a guard, and a limit that calls reserve. */
function guarded(changes: Partial<GuardPolicy> = {}): Gateway {
  const [openai, anthropic, gemini] = [
    provider("openai"),
    provider("anthropic"),
    provider("gemini"),
  ];
  const gateway = new Gateway(openai, anthropic, gemini);
  const caller = {
    ...agent(openai, anthropic, gemini),
    guards: [guardWith(changes)],
    limits: { ...NO_LIMITS, maxConcurrentRequests: 1, maxTokensPerDay: 1_000_000_000 },
  };
  gateway.policy = { ...gateway.policy, agentsByTokenHash: new Map([[hashKey(TOKEN), caller]]) };
  gateway.classify = (text) => (text.includes("evil") ? EVIL : BENIGN);
  return gateway;
}

const chat = (content: string, more: object = {}): object => ({
  model: "openai/m",
  messages: [{ role: "user", content }],
  ...more,
});

async function asked(gateway: Gateway, body: object, path = "/v1/chat/completions"): Promise<Trip> {
  const trip = gateway.trip().request({ path, body });
  await settled();
  return trip;
}

const refused = (trip: Trip): { readonly detail: object; readonly error: { code: unknown } } =>
  JSON.parse(trip.exchange.responded.body) as ReturnType<typeof refused>;

const DETAIL = {
  code: "guard_violation",
  binding: "strict",
  where: "prompt",
  tool: "",
  label: "injection",
  score: 0.9,
  message: expect.stringContaining("The guard strict found a prompt injection"),
};

describe("a blocked request", () => {
  const user = [{ role: "user", content: "evil" }];
  test.each([
    ["openai", "/v1/chat/completions", chat("evil"), { code: "guard_violation" }],
    [
      "anthropic",
      "/v1/messages",
      { model: "anthropic/m", max_tokens: 9, messages: user },
      { type: "permission_error" },
    ],
    [
      "gemini",
      "/v1beta/models/gemini/m:generateContent",
      { contents: [{ role: "user", parts: [{ text: "evil" }] }] },
      { code: 403, status: "PERMISSION_DENIED" },
    ],
    [
      "responses",
      "/v1/responses",
      { model: "openai/m", input: "evil" },
      { code: "guard_violation" },
    ],
  ])("is told in the form of %s, with the detail beside it", async (_, path, body, error) => {
    const trip = await asked(guarded(), body, path);
    expect(trip.exchange.responded.status).toBe(403);
    expect(refused(trip)).toMatchObject({ error, detail: DETAIL });
  });

  test("reserves nothing, and leaves its place to the next one", async () => {
    const gateway = guarded();
    for (let turn = 0; turn < 3; turn += 1) {
      const trip = await asked(gateway, chat("evil"));
      expect(trip.exchange.responded.status).toBe(403);
    }
    expect(gateway.calls.size).toBe(0);
    expect(await gateway.bytesInFlight()).toBe(0);
    expect((await asked(gateway, chat("Hello"))).exchange.proceeded.body).toBeDefined();
  });

  test("is recorded as a violation and as a refusal", async () => {
    const gateway = guarded();
    await asked(gateway, chat("evil"));
    expect(gateway.audit.events.map(({ type }) => type)).toEqual([
      "GUARD.VIOLATION_ENFORCE",
      "LLM_REFUSED",
    ]);
    expect(gateway.audit.ofType("LLM_REFUSED")).toMatchObject([{ code: "guard_violation" }]);
  });
});

test("a request that is only recorded is forwarded", async () => {
  const gateway = guarded({ enforcement: "audit" });
  const trip = await asked(gateway, chat("evil"));
  expect(trip.exchange.last.kind).toBe("proceed");
  expect(gateway.audit.ofType("GUARD.VIOLATION_AUDIT")).toMatchObject([{ payload: "evil" }]);
});

test("a caller without guards does not wait", () => {
  const gateway = new Gateway(provider("openai"));
  gateway.classify = () => {
    throw new Error("asked");
  };
  expect(gateway.trip().request({ body: chat("evil") }).exchange.last.kind).toBe("proceed");
});

test("embeddings are not scanned", async () => {
  const body = { model: "openai/m", input: "an evil plan" };
  const trip = await asked(guarded(), body, "/v1/embeddings");
  expect(trip.exchange.last.kind).toBe("proceed");
});

test("a client that disconnects meanwhile leaves nothing behind", async () => {
  const gateway = guarded();
  const verdict = Promise.withResolvers<ClassifierVerdict>();
  gateway.classify = () => verdict.promise;
  const trip = gateway.trip().request({ body: chat("Hello") });
  const before = trip.exchange.answers.length;
  trip.closed();
  verdict.resolve(BENIGN);
  await settled();
  expect(trip.exchange.answers).toHaveLength(before);
  expect(gateway.calls.size).toBe(0);
  expect(await gateway.bytesInFlight()).toBe(0);
});

describe("an answer", () => {
  const scan = { ...SCAN, responses: true };
  const usage = { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 };
  const answer = (content: string): object => ({
    id: "1",
    object: "chat.completion",
    created: 1,
    model: "m",
    choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }],
    usage,
  });

  test("that is blocked is withheld, and its usage counts", async () => {
    const gateway = guarded({ scan });
    const trip = await asked(gateway, chat("Hello"));
    trip.responseHeaders(200).responseBody(answer("evil plan"));
    await settled();
    expect(trip.exchange.responded.status).toBe(403);
    expect(trip.exchange.responded.body).not.toContain("plan");
    expect(refused(trip).detail).toMatchObject({ where: "response", tool: "" });
    expect(gateway.audit.ofType("LLM_CALL")).toMatchObject([
      { code: "guard_violation", status: 403, input_tokens: 3, output_tokens: 4 },
    ]);
  });

  test("that is harmless is forwarded as it came", async () => {
    const gateway = guarded({ scan });
    const trip = await asked(gateway, chat("Hello"));
    trip.responseHeaders(200).responseBody(answer("fine"));
    await settled();
    expect(trip.exchange.last).toMatchObject({ kind: "proceed" });
    expect(gateway.audit.ofType("LLM_CALL")).toMatchObject([{ status: 200, end: "completed" }]);
  });

  test("whose client disconnects meanwhile is settled once", async () => {
    const gateway = guarded({ scan });
    const trip = await asked(gateway, chat("Hello"));
    const verdict = Promise.withResolvers<ClassifierVerdict>();
    gateway.classify = () => verdict.promise;
    trip.responseHeaders(200).responseBody(answer("evil"));
    trip.closed();
    verdict.resolve(EVIL);
    await settled();
    expect(gateway.audit.ofType("LLM_CALL")).toMatchObject([{ end: "disconnected" }]);
    expect(gateway.defects).toEqual([]);
  });

  test.each([
    ["whole", true],
    ["abandoned", false],
  ])("that is a stream, %s, is recorded after it was forwarded", async (_, isWhole) => {
    const gateway = guarded({ scan });
    const trip = await asked(gateway, chat("Hello", { stream: true }));
    const event = (content: string): string =>
      `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`;
    trip.responseHeaders(200, { "content-type": "text/event-stream" });
    trip.responseBody(event("ev"), false).responseBody(event("il plan"), false);
    expect(trip.exchange.last.kind).not.toBe("respond");
    if (isWhole) trip.responseBody("data: [DONE]\n\n");
    else trip.closed();
    await settled();
    expect(gateway.audit.ofType("GUARD.VIOLATION_AUDIT")).toMatchObject([
      { where: "response", payload: "evil plan" },
    ]);
  });
});
