import { describe, expect, test } from "vitest";
import { FakeClock } from "../platform/testing.ts";
import type { Lease } from "../limits/contract.ts";
import type { Failure, AttemptTarget } from "./attempts/retry-plan.ts";
import { Call, type CallOptions, modelIdOf, NotSent } from "./call.ts";
import { UNCHANGED } from "./dialects/changes.ts";
import { parseRoute } from "./request/routes.ts";
import { provider } from "./testing.ts";

const OPENAI: AttemptTarget = { provider: provider("openai"), model: "m" };
const ANTHROPIC: AttemptTarget = { provider: provider("anthropic"), model: "c" };
const LEASE: Lease = { id: "l", scope: "s", day: "2026-11-21" };

const failure = (status: number): Failure => ({ status, retryAfterMs: undefined, flags: "" });

interface Made {
  readonly call: Call;
  readonly clock: FakeClock;
  readonly released: () => number;
}

function made(path = "/v1/chat/completions"): Made {
  const clock = new FakeClock();
  let released = 0;
  const call = new Call({
    request: { id: "call-1", route: parseRoute(path), startedAt: 5 },
    changes: UNCHANGED,
    plan: { current: OPENAI },
    original: { raw: Buffer.from("{}") },
    entry: { lease: LEASE, bytes: { release: () => released++ } },
    clock,
  } as unknown as CallOptions);
  return { call, clock, released: () => released };
}

test("a call begins with one attempt at the requested provider, since its first byte", () => {
  const { call } = made();
  expect(call.attempts).toEqual([{ target: OPENAI, startedAt: 5, changes: UNCHANGED }]);
  expect([call.modelId, call.retries, call.fellBackFrom]).toEqual(["openai/m", 0, undefined]);
  expect([call.lease, call.firstAttemptStarted]).toEqual([LEASE, true]);
  expect(call.answer).toEqual({
    begun: false,
    streaming: undefined,
    firstByteAt: undefined,
    firstContentAt: undefined,
    lastProgressAt: undefined,
    usage: undefined,
    partialUsage: undefined,
    bytes: 0,
    events: 0,
    receivedWhole: false,
  });
});

test("a further attempt is a retry; at another model it is a fallback", () => {
  const { call, clock } = made();
  clock.advance(100);
  call.begin(OPENAI);
  expect([call.retries, call.fellBackFrom, call.modelId]).toEqual([1, undefined, "openai/m"]);
  const changes = { ...UNCHANGED, dropped: ["seed"] };
  call.begin(ANTHROPIC, changes);
  expect([call.retries, call.fellBackFrom, call.modelId]).toEqual([2, "openai/m", "anthropic/c"]);
  expect(call.target).toBe(ANTHROPIC);
  expect(call.attempts.slice(1)).toEqual([
    { target: OPENAI, startedAt: clock.monotonic(), changes: UNCHANGED },
    { target: ANTHROPIC, startedAt: clock.monotonic(), changes },
  ]);
});

test("its body is kept for further attempts, and its bytes are released when there are none", () => {
  const { call, released } = made();
  expect(call.original?.raw.toString()).toBe("{}");
  expect(released()).toBe(0);
  call.dropOriginal();
  expect(call.original).toBeUndefined();
  expect(released()).toBe(1);
});

test("each provider is sent it in its own way, or not at all", () => {
  const { call } = made();
  expect(call.delivery).toMatchObject({ kind: "pass", dialect: "openai" });
  call.begin(ANTHROPIC);
  expect(call.delivery).toMatchObject({ kind: "translate", dialect: "anthropic" });
  const embeddings = made("/v1/embeddings").call;
  embeddings.begin(ANTHROPIC);
  expect(() => embeddings.delivery).toThrow("anthropic/c does not serve the call");
});

describe("a failure", () => {
  test("belongs to its attempt, and the first report of it is decisive", () => {
    const { call, clock } = made();
    call.begin(ANTHROPIC);
    clock.advance(10);
    const at = clock.monotonic();
    call.reportFailure(1, failure(503));
    clock.advance(10);
    call.reportFailure(1, failure(429));
    expect(call.attempts[0]).toMatchObject({ failure: failure(503), failedAt: at });
    expect(call.attempts[1]).not.toHaveProperty("failure");
  });

  test.each([0, 3, -1])("of attempt %i, which was not made, is ignored", (number) => {
    const { call } = made();
    call.begin(ANTHROPIC);
    call.reportFailure(number, failure(503));
    expect(call.attempts.some((attempt) => "failure" in attempt)).toBe(false);
  });

  test("is told to who waits for it: once, and at once if it is known", () => {
    const { call } = made();
    const told: [number, number][] = [];
    call.begin(ANTHROPIC);
    call.onFailure(2, ({ status }) => told.push([2, status]));
    call.reportFailure(1, failure(500));
    expect(told).toEqual([]);
    call.onFailure(1, ({ status }) => told.push([1, status]));
    call.reportFailure(2, failure(503));
    call.reportFailure(2, failure(504));
    expect(told).toEqual([
      [1, 500],
      [2, 503],
    ]);
  });

  test.each<[string, readonly (Failure | undefined)[], number]>([
    ["the first", [undefined, undefined], 0],
    ["the first that was sent", [NotSent.unsupported, undefined], 1],
    ["behind several that were not sent", [NotSent.overBudget, NotSent.unsupported, undefined], 2],
  ])("that Envoy reports is of the attempts that it sent: %s", (_name, known, expected) => {
    const { call } = made();
    for (let more = 1; more < known.length; more++) call.begin(ANTHROPIC);
    known.forEach((each, index) => each && call.reportFailure(index + 1, each));
    call.reportSentFailure(failure(502));
    expect(call.attempts.findIndex((attempt) => attempt.failure?.status === 502)).toBe(expected);
  });

  test("that Envoy reports next is of the next attempt that it sent", () => {
    const { call } = made();
    call.begin(OPENAI);
    call.begin(ANTHROPIC);
    call.reportSentFailure(failure(500));
    call.reportFailure(2, NotSent.overBudget);
    call.reportSentFailure(failure(501));
    call.reportSentFailure(failure(502));
    expect(call.attempts.map((attempt) => attempt.failure?.status)).toEqual([500, 0, 501]);
  });
});

test("a model's id names its provider", () => {
  expect(modelIdOf(ANTHROPIC)).toBe("anthropic/c");
});
