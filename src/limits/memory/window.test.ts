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

test("a call of the future counts while it is a window ahead at most", () => {
  const window = new SlidingWindow("agent", 100);
  window.add({ id: "ahead", at: 1_000 });
  expect(window.count(900)).toBe(1);
  expect(window.count(899)).toBe(0);
});

test("a call after the clock was set back far is not hidden behind those of the future", () => {
  const window = new SlidingWindow("agent", 100);
  for (const at of [1_000, 500, 510]) window.add({ id: `${at}`, at });
  expect(window.entries(510).map(({ at }) => at)).toEqual([500, 510]);
});

test("what has left it is not listed", () => {
  const window = new SlidingWindow("agent", 100);
  for (const at of [0, 50]) window.add({ id: `${at}`, at });
  expect(window.entries(100)).toEqual([{ id: "50", at: 50 }]);
});

test.each([1, 63, 64, 65, 127, 128, 129, 200])("%i calls leave one after the other", (calls) => {
  const window = new SlidingWindow("agent", 1_000);
  for (let at = 0; at < calls; at++) window.add({ id: `${at}`, at });
  for (let left = 1; left <= calls; left++) {
    expect(window.count(999 + left)).toBe(calls - left);
    const next = window.entries(999 + left)[0];
    expect(next?.at).toBe(left === calls ? undefined : left);
  }
});
