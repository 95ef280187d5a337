import { describe, expect, test } from "vitest";
import { hashKey } from "../../access/credentials.ts";
import type { ClassifierVerdict } from "../../guard/classifier-client.ts";
import { guardPolicy, HUNG, judged } from "../../guard/testing.ts";
import { settled } from "../../platform/testing.ts";
import { accessKey, EXTERNAL, provider, type Request, TOKEN, type Trip } from "../testing.ts";
import { GuardedGateway, PATTERN } from "../testing-guard.ts";

const chat = (content: unknown, more: object = {}): Request => ({
  body: { model: "openai/m", messages: [{ role: "user", content }], ...more },
});
const gemini = (path: string, contents: unknown): Request => ({
  path: `/v1beta/models/gemini%2Fm:${path}`,
  body: { contents },
});
const RESULT = [
  { role: "model", parts: [{ functionCall: { name: "web", args: {} } }] },
  { role: "user", parts: [{ functionResponse: { name: "web", response: { page: PATTERN } } }] },
];
const ANTHROPIC_RESULT = [
  { role: "assistant", content: [{ type: "tool_use", id: "t1", name: "web", input: {} }] },
  { role: "user", content: [{ type: "tool_result", tool_use_id: "t1", content: PATTERN }] },
];

const ENFORCED = "GUARD.VIOLATION_ENFORCE";
const AUDITED = "GUARD.VIOLATION_AUDIT";
const UNAVAILABLE = "GUARD.UNAVAILABLE";

async function ask(shared: GuardedGateway, request: Request): Promise<Trip> {
  const trip = shared.trip().request(request);
  await settled();
  return trip;
}

interface Shape {
  readonly name: string;
  readonly request: Request;
  readonly where: string;
  readonly tool: string;
  readonly param: string;
  /** The API's own error. */
  readonly error: object;
}

const OPENAI_ERROR = { error: { type: "permission_error", code: "guard_violation" } };
const ANTHROPIC_ERROR = { type: "error", error: { type: "permission_error" } };
const GEMINI_ERROR = { error: { code: 403, status: "PERMISSION_DENIED" } };

const SHAPES: readonly Shape[] = [
  {
    name: "chat",
    request: chat(PATTERN),
    where: "prompt",
    tool: "",
    param: "messages[0].content",
    error: OPENAI_ERROR,
  },
  {
    name: "chat, streamed",
    request: chat([{ type: "text", text: PATTERN }], { stream: true }),
    where: "prompt",
    tool: "",
    param: "messages[0].content[0]",
    error: OPENAI_ERROR,
  },
  {
    name: "chat for a provider of another dialect",
    request: { body: { model: "anthropic/m", messages: [{ role: "system", content: PATTERN }] } },
    where: "prompt",
    tool: "",
    param: "messages[0].content",
    error: OPENAI_ERROR,
  },
  {
    name: "responses",
    request: { path: "/v1/responses", body: { model: "openai/m", input: PATTERN } },
    where: "prompt",
    tool: "",
    param: "input",
    error: OPENAI_ERROR,
  },
  {
    name: "messages",
    request: {
      path: "/v1/messages",
      body: { model: "anthropic/m", max_tokens: 9, messages: ANTHROPIC_RESULT },
    },
    where: "tool_result",
    tool: "web",
    param: "messages[1].content[0].content",
    error: ANTHROPIC_ERROR,
  },
  {
    name: "count_tokens",
    request: {
      path: "/v1/messages/count_tokens",
      body: { model: "anthropic/m", system: PATTERN, messages: [] },
    },
    where: "prompt",
    tool: "",
    param: "system",
    error: ANTHROPIC_ERROR,
  },
  {
    name: "generateContent",
    request: gemini("generateContent", RESULT),
    where: "tool_result",
    tool: "web",
    param: "contents[1].parts[0]",
    error: GEMINI_ERROR,
  },
  {
    name: "streamGenerateContent",
    request: gemini("streamGenerateContent?alt=sse", [{ parts: [{ text: PATTERN }] }]),
    where: "prompt",
    tool: "",
    param: "contents[0].parts[0]",
    error: GEMINI_ERROR,
  },
  {
    name: "countTokens",
    request: gemini("countTokens", [{ parts: [{ text: PATTERN }] }]),
    where: "prompt",
    tool: "",
    param: "contents[0].parts[0]",
    error: GEMINI_ERROR,
  },
];

describe.each(SHAPES)("$name", ({ request, where, tool, param, error }) => {
  test("enforce: 403 with the API's error and the detail, and nothing is sent or used", async () => {
    const shared = new GuardedGateway();
    const { exchange } = await ask(shared, request);
    const { status, headers, body } = exchange.responded;
    expect(status).toBe(403);
    expect(headers.get("content-type")).toBe("application/json");
    expect(headers.get("x-svc-retries")).toBe("0");
    expect(headers.has("retry-after")).toBe(false);
    const parsed = JSON.parse(body) as { detail: { message: string }; error: { message: string } };
    expect(parsed).toMatchObject(error);
    expect(parsed.detail).toEqual({
      code: "guard_violation",
      binding: "strict",
      where,
      tool,
      label: "injection",
      score: 0.9,
      message: expect.stringContaining("The guard strict found a prompt injection in ") as string,
    });
    expect(parsed.error.message).toContain(parsed.detail.message);
    expect(shared.audit.ofType(ENFORCED)).toMatchObject([
      { where, param, payload: expect.stringContaining(PATTERN) as string, call: "call-1" },
    ]);
    expect(shared.audit.ofType("LLM_REFUSED")).toMatchObject([
      { code: "guard_violation", status: 403 },
    ]);
    expect(shared.audit.events).toHaveLength(2);
    expect(shared.calls.size).toBe(0);
    expect(await shared.bytesInFlight()).toBe(0);
    expect(shared.defects).toEqual([]);
    expect(shared.logText.join("")).not.toContain(PATTERN);
  });

  test("audit: it is forwarded, and recorded", async () => {
    const shared = new GuardedGateway(guardPolicy({ enforcement: "audit" }));
    const trip = await ask(shared, request);
    expect(trip.exchange.last).toMatchObject({ kind: "proceed", phase: "request_body" });
    expect(shared.audit.ofType(AUDITED)).toMatchObject([{ where, param }]);
    expect(shared.audit.events).toHaveLength(1);
    expect(shared.calls.size).toBe(1);
  });

  test("a verdict that is missing: it is forwarded, and recorded", async () => {
    const shared = new GuardedGateway();
    shared.classify = () => HUNG;
    const trip = await ask(shared, request);
    expect(trip.exchange.last).toMatchObject({ kind: "proceed", phase: "request_body" });
    expect(shared.audit.ofType(UNAVAILABLE)).toMatchObject([{ reason: "timeout" }]);
    expect(shared.audit.events).toHaveLength(1);
    expect(await shared.metric("svc_guard_checks_total")).toMatchObject([
      { value: 1, labels: { label: "unavailable", action: "allow" } },
    ]);
  });
});

test("a blocked request leaves its place to the next one, and uses no budget", async () => {
  const shared = new GuardedGateway();
  // The agent may have one request at a time.
  for (let count = 0; count < 3; count += 1) {
    expect((await ask(shared, chat(PATTERN))).exchange.responded.status).toBe(403);
  }
  const trip = await ask(shared, chat("hello"));
  expect(trip.exchange.last.kind).toBe("proceed");
  expect((await ask(shared, chat("hello"))).exchange.responded.status).toBe(429);
  trip
    .responseHeaders(200)
    .responseBody({ choices: [], usage: { prompt_tokens: 1, completion_tokens: 1 } });
  await settled();
  expect(shared.audit.ofType("LLM_CALL")).toMatchObject([{ status: 200 }]);
});

test("a caller without guards does not wait, and nobody is asked", () => {
  const shared = new GuardedGateway();
  shared.guard();
  const trip = shared.trip().request(chat(PATTERN));
  expect(trip.exchange.last).toMatchObject({ kind: "proceed", phase: "request_body" });
  expect(shared.asked).toEqual([]);
});

test.each([
  ["/v1/embeddings", { model: "openai/m", input: PATTERN }],
  ["/v1beta/models/gemini%2Fm:embedContent", { content: { parts: [{ text: PATTERN }] } }],
  [
    "/v1beta/models/gemini%2Fm:batchEmbedContents",
    { requests: [{ model: "models/gemini/m", content: { parts: [{ text: PATTERN }] } }] },
  ],
])("embeddings are not scanned: %s", async (path, body) => {
  const shared = new GuardedGateway();
  const trip = shared.trip().request({ path, body });
  expect(trip.exchange.last).toMatchObject({ kind: "proceed" });
  expect(shared.asked).toEqual([]);
  await settled();
});

test("a request that may not be made is refused before anybody is asked", async () => {
  const shared = new GuardedGateway();
  for (const model of ["secret-model", "unknown/m"]) {
    const { exchange } = await ask(shared, {
      body: { model, messages: [{ role: "user", content: PATTERN }] },
    });
    expect(exchange.responded.body).not.toContain("guard_violation");
  }
  expect((await ask(shared, { body: "{" })).exchange.responded.status).toBe(400);
  expect(shared.asked).toEqual([]);
});

test("the holder of an access key is guarded as an agent is", async () => {
  const shared = new GuardedGateway();
  const opened = provider("openai", { external: EXTERNAL });
  const key = accessKey(opened, { guards: [guardPolicy()] });
  shared.policy = {
    ...shared.policy,
    providers: new Map([[opened.key, opened]]),
    keysByHash: new Map([[hashKey(TOKEN), { key, graceUntil: undefined }]]),
    agentsByTokenHash: new Map(),
  };
  const { exchange } = await ask(shared, {
    path: "/ext/v1/chat/completions",
    body: { model: "m", messages: [{ role: "user", content: PATTERN }] },
  });
  expect(exchange.responded.status).toBe(403);
  expect(shared.audit.ofType(ENFORCED)).toMatchObject([
    { workload: "ext:laptop", source: "external", access_key: "default/laptop" },
  ]);
});

describe("while the classifier is asked", () => {
  function waiting(): {
    readonly shared: GuardedGateway;
    readonly trip: Trip;
    readonly answer: (verdict: ClassifierVerdict) => Promise<void>;
  } {
    const shared = new GuardedGateway();
    const { promise, resolve } = Promise.withResolvers<ClassifierVerdict>();
    shared.classify = () => promise;
    const trip = shared.trip().request(chat("hello"));
    const answer = async (verdict: ClassifierVerdict): Promise<void> => {
      resolve(verdict);
      await settled();
    };
    return { shared, trip, answer };
  }

  test("nothing is sent", async () => {
    const { trip, answer, shared } = waiting();
    await settled();
    expect(trip.exchange.last).toEqual({ kind: "pass", phase: "request_headers" });
    expect(shared.calls.size).toBe(0);
    await answer(judged(0));
    expect(trip.exchange.last).toMatchObject({ kind: "proceed", phase: "request_body" });
  });

  test("the guard's time ends the wait", async () => {
    const { trip, shared } = waiting();
    await shared.clock.advanceAndSettle(999);
    expect(trip.exchange.last).toEqual({ kind: "pass", phase: "request_headers" });
    await shared.clock.advanceAndSettle(1);
    expect(trip.exchange.last).toMatchObject({ kind: "proceed", phase: "request_body" });
    expect(shared.audit.ofType(UNAVAILABLE)).toHaveLength(1);
  });

  test.each([
    ["benign", judged(0)],
    ["a finding", judged(1)],
    ["none", HUNG],
  ])("a client that disconnects: nothing is sent or answered; verdict: %s", async (_, verdict) => {
    const { trip, shared, answer } = waiting();
    trip.closed();
    const answers = trip.exchange.answers.length;
    expect(await shared.bytesInFlight()).toBe(0);
    await answer(verdict);
    expect(trip.exchange.answers).toHaveLength(answers);
    expect(shared.calls.size).toBe(0);
    expect(shared.audit.ofType("LLM_REFUSED")).toEqual([]);
    expect(shared.defects).toEqual([]);
    // Its place is free.
    shared.classify = () => judged(0);
    expect((await ask(shared, chat("next"))).exchange.last.kind).toBe("proceed");
  });

  test("another request of the agent is refused by its limit, not by the guard", async () => {
    const { shared, answer } = waiting();
    expect((await ask(shared, chat("hello"))).exchange.responded.status).toBe(429);
    await answer(judged(0));
  });
});

test("a classifier that throws fails its own request only", async () => {
  const shared = new GuardedGateway();
  shared.classify = () => {
    throw new Error("a defect");
  };
  const trip = await ask(shared, chat("hello"));
  expect(trip.exchange.last.kind).toBe("fail");
  expect(shared.defects).toHaveLength(1);
  shared.classify = () => judged(0);
  expect((await ask(shared, chat("hello"))).exchange.last.kind).toBe("proceed");
});
