/** Bounds of estimates, to the token. */
import { describe, expect, test } from "vitest";
import type { Attempt, Call, CallAnswer, CallRequest } from "../call.ts";
import { demandOf, estimateLostAttempt, estimateUsage } from "./estimate.ts";

interface Given {
  readonly answer?: Partial<CallAnswer>;
  readonly facts?: Partial<CallRequest["facts"]>;
  readonly request?: Partial<CallRequest>;
  readonly model?: string;
}

/** A call that began at 0, whose latest attempt began after one second. */
function call({ answer = {}, facts = {}, request = {}, model = "gpt-4o" }: Given = {}): Call {
  return {
    request: {
      route: { operation: "chat" },
      size: { promptTokens: 100, outputTokens: 10_000 },
      startedAt: 0,
      bytes: 0,
      ...request,
      facts: {
        stream: true,
        choices: 1,
        maxOutputTokens: undefined,
        reasoning: { kind: "off" },
        ...facts,
      },
    },
    target: { model },
    attempts: [{ startedAt: 0 }, { startedAt: 1_000 }],
    answer: {
      streaming: undefined,
      partialUsage: undefined,
      firstContentAt: undefined,
      lastProgressAt: undefined,
      bytes: 0,
      events: 0,
      receivedWhole: false,
      ...answer,
    },
  } as unknown as Call;
}

const output = (given: Given, now: number): number => estimateUsage(call(given), now).outputTokens;

describe("a stream", () => {
  const progress = { bytes: 33, events: 4, firstContentAt: 1_500, lastProgressAt: 2_000 };

  test.each<[string, Given, number, number]>([
    ["what passed, by its bytes", { answer: progress }, 2_000, 10],
    ["what passed, by its events", { answer: { ...progress, events: 11 } }, 2_000, 11],
    ["and 300 a second that are on their way", { answer: progress }, 2_100, 10 + 30],
    ["rounded up", { answer: progress }, 2_001, 10 + 1],
    ["no more than its maximum", { answer: progress }, 1_000_000, 10_000],
    ["what passed, if that is more", { answer: { ...progress, events: 10_500 } }, 3_000, 10_500],
    ["since its attempt, if nothing came", {}, 1_100, 30],
    ["nothing for a clock that went back", {}, 900, 0],
    [
      "its reasoning, until its first content",
      { answer: progress, facts: { reasoning: { kind: "unspecified" } }, model: "gpt-5" },
      2_000,
      10 + 150,
    ],
    [
      "its reasoning, while there is no content",
      { facts: { reasoning: { kind: "unspecified" } }, model: "gpt-5" },
      1_100,
      30 + 30,
    ],
    [
      "no reasoning of a model that has none",
      { answer: progress, facts: { reasoning: { kind: "unspecified" } } },
      2_000,
      10,
    ],
    [
      "its budget of reasoning",
      { answer: progress, facts: { reasoning: { kind: "budget", tokens: 40 } } },
      2_000,
      10 + 40,
    ],
    [
      "what was possible, of a larger budget",
      { answer: progress, facts: { reasoning: { kind: "budget", tokens: 4_000 } } },
      2_000,
      10 + 150,
    ],
  ])("costs %s", (_name, given, now, tokens) => {
    expect(output(given, now)).toBe(tokens);
  });

  test.each([
    ["o3-mini", true],
    ["openai/o1", true],
    ["gpt-5", true],
    ["gpt-4o", false],
    ["gpt-oss-120b", true],
    ["models/gemini-2.5-pro", true],
    ["gemini-2.0-flash", false],
    ["gemini-3", true],
    ["deepseek-r1", true],
    ["deepseek-v3", false],
    ["qwq-32b", true],
    ["grok-3", true],
    ["grok-2", false],
    ["claude-thinking", true],
    ["phi-Reasoning", true],
    ["foo-o3", false],
  ])("of %s may reason by default: %s", (model, reasons) => {
    const facts = { reasoning: { kind: "unspecified" } } as const;
    expect(output({ model, facts }, 1_100)).toBe(reasons ? 60 : 30);
  });
});

describe("a whole answer", () => {
  const whole = { stream: false };

  test.each<[string, Given, number]>([
    ["its reservation, if it was not received", { facts: whole }, 10_000],
    ["its bytes", { facts: whole, answer: { receivedWhole: true, bytes: 34 } }, 11],
    [
      "no more than it asked for",
      { facts: { ...whole, maxOutputTokens: 5 }, answer: { receivedWhole: true, bytes: 34 } },
      5,
    ],
    [
      "what it is, whatever was asked for",
      { answer: { streaming: false, receivedWhole: true, bytes: 34 } },
      11,
    ],
    [
      "as a stream, if it is one",
      { facts: whole, answer: { streaming: true, events: 3, lastProgressAt: 50_000 } },
      3,
    ],
  ])("costs %s", (_name, given, tokens) => {
    expect(output(given, 50_000)).toBe(tokens);
  });
});

test("a report that a broken stream began with is exact for its input", () => {
  const said = {
    inputTokens: 77,
    cachedInputTokens: 5,
    cacheWrite5mTokens: 6,
    cacheWrite1hTokens: 7,
    outputTokens: 8,
  };
  const answer = { partialUsage: said, lastProgressAt: 2_000, events: 3 };
  expect(estimateUsage(call({ answer }), 2_000)).toEqual(said);
  expect(estimateUsage(call({ answer }), 2_100)).toEqual({ ...said, outputTokens: 33 });
});

describe("without a size", () => {
  const sized = (bytes: number): Partial<CallRequest> => ({ size: undefined, bytes });

  test.each([
    [0, 0],
    [1, 1],
    [300, 100],
    [301, 101],
    [3_000_000, 1_000_000],
    [90_000_000, 1_000_000],
  ])("a body of %i bytes is %i tokens of input", (bytes, tokens) => {
    expect(estimateUsage(call({ request: sized(bytes) }), 1_000)).toEqual({
      inputTokens: tokens,
      cachedInputTokens: 0,
      cacheWrite5mTokens: 0,
      cacheWrite1hTokens: 0,
      outputTokens: 0,
    });
  });

  test.each([
    [undefined, 1, 4_096],
    [undefined, 3, 3 * 4_096],
    [50, 3, 150],
  ])("a maximum of %s, %i times, demands %i tokens", (maxOutputTokens, choices, tokens) => {
    const given = { request: sized(30), facts: { maxOutputTokens, choices } };
    expect(demandOf(call(given))).toEqual({ tokens: 10 + tokens, microUsd: 0, requests: 1 });
  });
});

test("the demand of a call is its size", () => {
  expect(demandOf(call())).toEqual({ tokens: 10_100, microUsd: 0, requests: 1 });
});

describe("an attempt that failed", () => {
  const attempt = (failure: Attempt["failure"], failedAt?: number): Attempt =>
    ({ startedAt: 1_000, failure, failedAt }) as unknown as Attempt;
  const broken = { status: 0, retryAfterMs: undefined, flags: "" };

  test.each<[string, Attempt, Given, number | undefined]>([
    ["while it streamed: its time", attempt(broken, 2_000), {}, 300],
    ["while it streamed: its maximum", attempt(broken, 900_000), {}, 10_000],
    [
      "before its answer: its maximum",
      attempt(broken, 2_000),
      { facts: { stream: false } },
      10_000,
    ],
    ["with an answer: nothing", attempt({ ...broken, status: 503 }, 2_000), {}, undefined],
    ["and was not reported: nothing", attempt(undefined, 2_000), {}, undefined],
    ["at no time: nothing", attempt(broken), {}, undefined],
  ])("costs, %s", (_name, failed, given, tokens) => {
    expect(estimateLostAttempt(call(given), failed)?.outputTokens).toBe(tokens);
  });
});
