/** Token buckets: what a sender gains by waiting, by a clock that is set back, and by others. */
import { describe, expect, test } from "vitest";
import { Budget, CallerBudgets } from "./refusal-budgets.ts";

const RATE = { perSecond: 2, burst: 5 };
const REFILL_MS = 2_500;

/** Takes what there is, and returns how much that was. */
function drain(budget: Budget, now: number): number {
  let taken = 0;
  for (; taken < 100 && budget.has(now); taken += 1) budget.take();
  return taken;
}

describe("a budget", () => {
  test("is full at first", () => {
    expect(drain(new Budget(RATE), 0)).toBe(5);
    expect(drain(new Budget(RATE), -1_000)).toBe(5);
  });

  test.each([
    [499, 0],
    [500, 1],
    [999, 1],
    [1_000, 2],
    [REFILL_MS - 1, 4],
    [REFILL_MS, 5],
    [1_000_000, 5],
  ])("that is empty has after %i ms: %i", (ms, tokens) => {
    const budget = new Budget(RATE);
    drain(budget, 1_000);
    expect(drain(budget, 1_000 + ms)).toBe(tokens);
  });

  test("gains as much by many questions as by one", () => {
    const budget = new Budget(RATE);
    drain(budget, 0);
    let tokens = 0;
    for (let now = 0; now <= 2_000; now += 125) tokens += drain(budget, now);
    expect(tokens).toBe(4);
  });

  test("gains nothing by a time that comes again", () => {
    const budget = new Budget(RATE);
    drain(budget, 1_000);
    for (const now of [1_000, 0, 900, 1_000]) expect(drain(budget, now)).toBe(0);
    expect(drain(budget, 1_500)).toBe(1);
  });

  test("asked about is not taken", () => {
    const budget = new Budget({ perSecond: 1, burst: 1 });
    expect([budget.has(0), budget.has(0)]).toEqual([true, true]);
    budget.take();
    expect(budget.has(0)).toBe(false);
  });
});

describe("the budgets of callers", () => {
  test("are each caller's own while there are places", () => {
    const budgets = new CallerBudgets(RATE, 2);
    expect(drain(budgets.of("a", 0), 0)).toBe(5);
    expect(drain(budgets.of("b", 0), 0)).toBe(5);
    expect(drain(budgets.of("a", 0), 0)).toBe(0);
    expect(budgets.size).toBe(2);
    const others = budgets.of("c", 0);
    expect(budgets.of("d", 0)).toBe(others);
    expect(others).not.toBe(budgets.of("a", 0));
    expect(budgets.size).toBe(2);
  });

  test("keep a place until its budget is full again, to the millisecond", () => {
    const budgets = new CallerBudgets(RATE, 1);
    const a = budgets.of("a", 0);
    const others = budgets.of("b", REFILL_MS - 1);
    expect(others).not.toBe(a);
    const b = budgets.of("b", REFILL_MS);
    expect(b).not.toBe(others);
    expect(budgets.size).toBe(1);
    expect(budgets.of("b", REFILL_MS)).toBe(b);
    expect(budgets.of("a", REFILL_MS)).toBe(others);
  });

  test("give the place of who was silent for the longest, not of who came first", () => {
    const budgets = new CallerBudgets(RATE, 2);
    const a = budgets.of("a", 0);
    const b = budgets.of("b", 1);
    expect(budgets.of("a", 2)).toBe(a);
    const c = budgets.of("c", REFILL_MS + 1);
    expect(budgets.of("a", REFILL_MS + 1)).toBe(a);
    expect(budgets.of("c", REFILL_MS + 1)).toBe(c);
    expect(budgets.of("b", REFILL_MS + 1)).not.toBe(b);
  });

  test("have no place at all where none is allowed", () => {
    const budgets = new CallerBudgets(RATE, 0);
    expect(budgets.of("a", 0)).toBe(budgets.of("b", 1_000_000));
    expect(budgets.size).toBe(0);
  });
});
