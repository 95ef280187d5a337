import { expect, test } from "vitest";
import { SlidingWindow } from "./window.ts";

test("holds what came in the last windowMs, to the millisecond", () => {
  const window = new SlidingWindow("agent", 100);
  for (const at of [0, 10, 20]) window.add({ id: `${at}`, at });
  expect(window.count(99)).toBe(3);
  expect(window.retryAfterMs(99, 3)).toBe(1);
  expect(window.retryAfterMs(99, 2)).toBe(11);
  expect(window.count(100)).toBe(2);
  expect(window.count(120)).toBe(0);
});

test("keeps its order when the clock was set back a little, and forgets a future that is far", () => {
  const window = new SlidingWindow("agent", 100);
  for (const at of [1_000, 950, 990]) window.add({ id: `${at}`, at });
  expect(window.entries(1_000).map(({ at }) => at)).toEqual([950, 990, 1_000]);
  expect(window.count(895)).toBe(2);
  expect(window.count(500)).toBe(0);
});

test("does not grow with what has left it", () => {
  const window = new SlidingWindow("agent", 10);
  for (let at = 0; at < 10_000; at++) {
    window.add({ id: `${at}`, at });
    expect(window.count(at)).toBeLessThanOrEqual(10);
  }
  expect(window.entries(9_999)).toHaveLength(10);
});

test("tells when the next call fits, by those that are still in it", () => {
  const window = new SlidingWindow("agent", 100);
  for (const at of [0, 10, 50]) window.add({ id: `${at}`, at });
  expect(window.count(105)).toBe(2);
  expect(window.retryAfterMs(105, 2)).toBe(5);
  expect(window.retryAfterMs(105, 1)).toBe(45);
  expect(window.retryAfterMs(105, 0)).toBe(100);
});
