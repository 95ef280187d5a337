import { expect, test } from "vitest";
import { combine } from "./combine.ts";

const scores = (benign: number, injection: number, jailbreak: number) => ({
  benign,
  injection,
  jailbreak,
});

test.each([
  [scores(0.9, 0.05, 0.05), scores(0.2, 0.7, 0.1), scores(0.2, 0.7, 0.1)],
  [scores(0.2, 0.7, 0.1), scores(0.9, 0.05, 0.05), scores(0.2, 0.7, 0.1)],
  [scores(0.2, 0.7, 0.1), scores(0.3, 0.1, 0.6), scores(0.2, 0.7, 0.6)],
  [undefined, scores(0.3, 0.1, 0.6), scores(0.3, 0.1, 0.6)],
])("of %j and %j", (one, other, expected) => {
  expect(combine(one, other)).toEqual(expected);
});
