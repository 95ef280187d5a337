import { expect, test } from "vitest";
import { LabelBound } from "./label-bound.ts";

test("each group has its own values; those that come later are other", () => {
  const labels = new LabelBound(2);
  expect(["a", "b", "c", "a", "d", "b"].map((value) => labels.bound("g", value))).toEqual([
    "a",
    "b",
    "other",
    "a",
    "other",
    "b",
  ]);
  expect(labels.bound("h", "c")).toBe("c");
});
