import { expect, test } from "vitest";
import { scanJson } from "./json/scan.ts";
import { expectLinear, stepsOf } from "./testing-work.ts";

test("the same work is the same number of steps", () => {
  const bytes = Buffer.from(`[${"1,".repeat(1000)}1]`);
  const steps = stepsOf(() => scanJson(bytes));
  expect(stepsOf(() => scanJson(bytes))).toBe(steps);
  expect(steps).toBeGreaterThan(1000);
});

test("quadratic work is told from linear work, in native code too", () => {
  const searching = (size: number) => () => {
    const text = "x".repeat(size);
    for (let at = 0; at < size; at += 100) text.indexOf("y", at);
  };
  expect(() => expectLinear(searching, 10_000)).toThrow(/work grows by [34]/);
  const copying = (size: number) => () => {
    let all = Buffer.alloc(0);
    for (let n = 0; n < size; n += 100) all = Buffer.concat([all, Buffer.alloc(100)]);
  };
  expect(() => expectLinear(copying, 10_000)).toThrow(/work grows by [34]/);
  const once = (size: number) => () => "x".repeat(size).indexOf("y");
  expectLinear(once, 10_000);
});
