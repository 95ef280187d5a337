import { describe, expect, test } from "vitest";
import type { ModelProviderPolicy } from "../../policy/snapshot.ts";
import { type Failure, RetryPlan, type AttemptTarget } from "./retry-plan.ts";

function target(name: string, attempts: number): AttemptTarget {
  const retries = { attempts, baseIntervalMs: 100, maxIntervalMs: 1_000, maxRetryAfterMs: 5_000 };
  return { provider: { name, retries } as ModelProviderPolicy, model: `${name}-model` };
}

const busy: Failure = { status: 503, retryAfterMs: undefined, flags: "" };
const wait = (retryAfterMs: number): Failure => ({ status: 429, retryAfterMs, flags: "" });
const highest = (): number => 0.999_999;

/** Names and waits of all attempts after the first. */
function walk(plan: RetryPlan, failure: Failure): [string, number][] {
  const seen: [string, number][] = [];
  for (let next = plan.next(failure); next.kind === "attempt"; next = plan.next(failure)) {
    seen.push([next.target.provider.name, Math.round(next.waitMs)]);
  }
  return seen;
}

describe("RetryPlan", () => {
  test("a provider's own attempts first, with exponential backoff, then each fallback at once", () => {
    const plan = new RetryPlan([target("a", 3), target("b", 2), target("c", 1)], highest, 16);
    expect(walk(plan, busy)).toEqual([
      ["a", 100],
      ["a", 200],
      ["b", 0],
      ["b", 100],
      ["c", 0],
    ]);
    expect(plan.next(busy)).toEqual({ kind: "exhausted" });
  });

  test("the interval stops growing at its maximum, and full jitter starts at zero", () => {
    expect(walk(new RetryPlan([target("a", 7)], highest, 16), busy).map(([, ms]) => ms)).toEqual([
      100, 200, 400, 800, 1000, 1000,
    ]);
    expect(walk(new RetryPlan([target("a", 3)], () => 0, 16), busy).map(([, ms]) => ms)).toEqual([
      0, 0,
    ]);
  });

  test("jitter never goes below what the upstream asks for", () => {
    expect(walk(new RetryPlan([target("a", 2)], () => 0, 16), wait(4_000))).toEqual([["a", 4_000]]);
    expect(walk(new RetryPlan([target("a", 2)], highest, 16), wait(4_000))).toEqual([["a", 4_100]]);
  });

  test("above the cap the next provider is tried at once", () => {
    const plan = new RetryPlan([target("a", 3), target("b", 3)], highest, 16);
    const next = plan.next(wait(5_001));
    expect(next).toMatchObject({
      kind: "attempt",
      waitMs: 0,
      changed: true,
      target: { provider: { name: "b" } },
    });
  });

  test("above the cap without a fallback there is nothing left", () => {
    expect(new RetryPlan([target("a", 3)], highest, 16).next(wait(5_001))).toEqual({
      kind: "exhausted",
    });
  });

  test("attempts never exceed the maximum of all", () => {
    const targets = Array.from({ length: 10 }, (_, i) => target(`p${i}`, 5));
    const plan = new RetryPlan(targets, highest, 16);
    expect(plan.maxAttempts).toBe(16);
    expect(walk(plan, busy)).toHaveLength(15);
    expect(plan.nextTarget()).toEqual({ kind: "exhausted" });
  });
});
