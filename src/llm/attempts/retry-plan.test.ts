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

  test("the cap itself is waited for, and zero is no wait", () => {
    const waits = (ms: number): [string, number][] =>
      walk(new RetryPlan([target("a", 2), target("b", 1)], () => 0, 16), wait(ms));
    expect(waits(5_000)).toEqual([
      ["a", 5_000],
      ["b", 0],
    ]);
    expect(waits(0)).toEqual([
      ["a", 0],
      ["b", 0],
    ]);
  });

  test("a provider that cannot express the request is skipped at once, and counts as tried", () => {
    const plan = new RetryPlan([target("a", 3), target("b", 2), target("c", 2)], highest, 4);
    expect(plan.current.provider.name).toBe("a");
    expect(plan.nextTarget()).toMatchObject({ waitMs: 0, changed: true });
    expect(plan.current.provider.name).toBe("b");
    expect(plan.next(busy)).toMatchObject({ target: { model: "b-model" }, changed: false });
    expect(plan.next(busy)).toMatchObject({ target: { model: "c-model" }, changed: true });
    expect(plan.next(busy)).toEqual({ kind: "exhausted" });
    expect(plan.nextTarget()).toEqual({ kind: "exhausted" });
    expect(plan.current.provider.name).toBe("c");
  });

  test("the limit is what the providers allow together, if that is less", () => {
    expect(new RetryPlan([target("a", 3), target("b", 2)], highest, 16).maxAttempts).toBe(5);
    expect(new RetryPlan([target("a", 3), target("b", 2)], highest, 4).maxAttempts).toBe(4);
  });

  test("the longest attempt is the longest wait and the longest first byte of all", () => {
    const slow = (
      firstByteTimeoutMs: number,
      maxIntervalMs: number,
      maxRetryAfterMs: number,
    ): AttemptTarget => {
      const retries = { attempts: 1, baseIntervalMs: 1, maxIntervalMs, maxRetryAfterMs };
      return { provider: { firstByteTimeoutMs, retries } as ModelProviderPolicy, model: "m" };
    };
    const plan = new RetryPlan([slow(60_000, 10, 100), slow(5_000, 2_000, 30_000)], highest, 16);
    expect(plan.longestAttemptMs).toBeGreaterThanOrEqual(60_000 + 2_000 + 30_000);
    expect(plan.longestAttemptMs).toBeLessThan(60_000 + 2_000 + 30_000 + 5_000);
  });
});
