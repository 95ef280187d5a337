/** The demand that is expected of an agent's next request, from its last one. */
import { describe, expect, test } from "vitest";
import type { LimitSubject } from "../../limits/subject.ts";
import { ExpectedDemand } from "./expected-demand.ts";

function subject(name: string, more: Partial<LimitSubject> = {}): LimitSubject {
  return {
    scope: `agent/default/${name}`,
    accounts: ["agent"],
    checks: [{ kind: "daily", account: "agent", unit: "tokens", limit: 1_000_000 }],
    maxTokensPerRequest: undefined,
    ...more,
  };
}

/** 1,000 bytes were 300 tokens of prompt and 200 of answer, for 5,000 millionths of a dollar. */
const ASKED = { amounts: { tokens: 500, microUsd: 5_000, requests: 1 }, outputTokens: 200 };
const A = subject("a");

function knowing(): ExpectedDemand {
  const expected = new ExpectedDemand();
  expected.remember(A, 1_000, ASKED);
  return expected;
}

describe("a request of a known caller", () => {
  test.each([
    ["the same size", 1_000, 306 + 200],
    ["twice the size", 2_000, 612 + 200],
    ["half the size: no less than the last", 500, 306 + 200],
  ])("of %s", (_name, bytes, tokens) => {
    const microUsd = Math.ceil((5_000 * tokens) / 500);
    expect(knowing().of(A, bytes)).toEqual({ tokens, microUsd, requests: 1 });
  });

  test("whose last had no bytes and no tokens", () => {
    const expected = new ExpectedDemand();
    const amounts = { tokens: 0, microUsd: 0, requests: 1 };
    expected.remember(A, 0, { amounts, outputTokens: 0 });
    expect(expected.of(A, 10)).toEqual(amounts);
  });

  test("is expected by the latest one", () => {
    const expected = knowing();
    const amounts = { tokens: 100, microUsd: 0, requests: 1 };
    expected.remember(A, 1_000, { amounts, outputTokens: 100 });
    expect(expected.of(A, 1_000)?.tokens).toBe(100);
  });
});

describe("nothing is expected", () => {
  test.each<[name: string, of: LimitSubject]>([
    ["of another caller", subject("b")],
    ["of another key of the scope", subject("a", { accounts: ["agent", "key/k"] })],
    ["of a caller without accounts", subject("a", { accounts: [] })],
    ["if no limit counts the cost", subject("a", { checks: [] })],
  ])("%s", (_name, of) => {
    expect(knowing().of(of, 1_000)).toBeUndefined();
  });

  test("of the caller that was silent for the longest, among very many", () => {
    const expected = new ExpectedDemand();
    const caller = (index: number): LimitSubject => subject(`caller-${index}`);
    for (let index = 0; index < 4_096; index += 1) expected.remember(caller(index), 1_000, ASKED);
    expect(expected.of(caller(0), 1_000)).toBeDefined();
    expected.remember(caller(0), 1_000, ASKED);
    expected.remember(caller(4_096), 1_000, ASKED);
    expect(expected.of(caller(0), 1_000)).toBeDefined();
    expect(expected.of(caller(1), 1_000)).toBeUndefined();
    expect(expected.of(caller(2), 1_000)).toBeDefined();
  });
});
