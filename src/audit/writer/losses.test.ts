import { expect, test } from "vitest";
import { gapFields, LossTally } from "./losses.ts";

const tally = (...types: readonly string[]): LossTally => {
  const made = new LossTally();
  types.forEach((type, index) => made.add(type, `t${index}`));
  return made;
};

test("losses are counted by type, since the first one", () => {
  const losses = tally("A", "B", "A").take();
  expect(gapFields(losses, "t9", "the disk is full")).toEqual({
    lost: 3,
    byType: { A: 2, B: 1 },
    since: "t0",
    until: "t9",
    reason: "the disk is full",
  });
});

test("what was taken is counted no more, until it is put back", () => {
  const losses = tally("A", "A", "B");
  const taken = losses.take();
  expect(losses.empty).toBe(true);
  losses.add("A", "t7");
  losses.add("C", "t8");
  losses.putBack(taken);
  expect(losses.empty).toBe(false);
  const all = losses.take();
  expect([Object.fromEntries(all.byType), all.since]).toEqual([{ A: 3, B: 1, C: 1 }, "t0"]);
  // A later loss does not change an earlier report.
  expect(Object.fromEntries(taken.byType)).toEqual({ A: 2, B: 1 });
});

test("so many types are counted by themselves, and all others together", () => {
  const known = Array.from({ length: 100 }, (_, index) => `T${index}`);
  const { byType } = tally(...known, "X", "Y", "T0").take();
  expect(byType.size).toBe(101);
  expect([byType.get("other"), byType.get("T0"), byType.get("T99")]).toEqual([2, 2, 1]);
});
