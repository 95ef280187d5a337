/** The summary of refusals that have no record of their own. */
import { describe, expect, test } from "vitest";
import { MOST_CALLERS, MOST_CODES, type Omission, Omissions } from "./omissions.ts";

const NOON = Date.UTC(2026, 0, 31, 12);

const omission = (more: Partial<Omission> = {}): Omission => ({
  caller: "default/a",
  code: "x",
  reason: "rate",
  time: NOON,
  ...more,
});

function of(...added: readonly Partial<Omission>[]): Omissions {
  const omissions = new Omissions();
  for (const each of added) omissions.add(omission(each));
  return omissions;
}

/** So many refusals, each of another caller with another code. */
const many = (count: number, from = 0): Partial<Omission>[] =>
  Array.from({ length: count }, (_, i) => ({ caller: `c-${from + i}`, code: `x-${from + i}` }));

test("one is not none", () => {
  expect(of().empty).toBe(true);
  expect(of({}).empty).toBe(false);
});

test("counts by caller, code and reason, each in the order of names", () => {
  const told = of(
    { caller: "b", code: "y", reason: "space" },
    { caller: "a", code: "z", reason: "failure" },
    { caller: "b", code: "x", reason: "rate" },
    { caller: "c", code: "x", reason: "rate" },
  ).told("LLM_REFUSED");
  expect(told).toMatchObject({ of: "LLM_REFUSED", count: 4 });
  expect(Object.entries(told["callers"] as object)).toEqual([
    ["a", 1],
    ["b", 2],
    ["c", 1],
  ]);
  expect(Object.entries(told["codes"] as object)).toEqual([
    ["x", 2],
    ["y", 1],
    ["z", 1],
  ]);
  expect(Object.entries(told["reasons"] as object)).toEqual([
    ["failure", 1],
    ["rate", 2],
    ["space", 1],
  ]);
});

test("tells the earliest and the latest time, though the clock was set back", () => {
  const told = of({ time: NOON }, { time: NOON - 5 }, { time: NOON + 7 }, { time: NOON }).told("X");
  expect(told).toMatchObject({
    since: "2026-01-31T11:59:59.995Z",
    until: "2026-01-31T12:00:00.007Z",
  });
});

describe("the names in one record are bounded", () => {
  const most = Math.max(MOST_CALLERS, MOST_CODES);

  test("as many as there may be have names, and no others are told of", () => {
    const told = of(...many(most)).told("X");
    expect(Object.keys(told["callers"] as object)).toHaveLength(MOST_CALLERS);
    expect(Object.keys(told["codes"] as object)).toHaveLength(MOST_CODES);
    expect(told).toMatchObject({ other_callers: undefined, other_codes: undefined });
  });

  test("the next are counted together, and those with a name still by it", () => {
    const told = of(...many(most + 3), { caller: "c-0", code: "x-0" }).told("X");
    expect(told).toMatchObject({ count: most + 4, other_callers: 3, other_codes: 3 });
    expect(told["callers"]).toMatchObject({ "c-0": 2, "c-1": 1 });
    expect(told["callers"]).not.toHaveProperty(`c-${most}`);
    expect(told["codes"]).toMatchObject({ "x-0": 2, "x-1": 1 });
  });
});

describe("what was not told is told with what came later", () => {
  test("with the sums, and the time of both", () => {
    const first = of({ time: NOON + 1 }, { caller: "b", reason: "space", time: NOON + 2 });
    first.merge(of({ time: NOON }, { code: "y", time: NOON + 3 }));
    expect(first.told("X")).toMatchObject({
      count: 4,
      callers: { "default/a": 3, b: 1 },
      codes: { x: 3, y: 1 },
      reasons: { rate: 3, space: 1 },
      since: "2026-01-31T12:00:00.000Z",
      until: "2026-01-31T12:00:00.003Z",
    });
  });

  test("within the bounds: its numbers add up", () => {
    const first = of(...many(MOST_CALLERS + 2));
    first.merge(of(...many(MOST_CALLERS + 5, 10)));
    const told = first.told("X");
    const sum = (member: string): number =>
      Object.values(told[member] as Record<string, number>).reduce((a, b) => a + b, 0);
    expect(told["count"]).toBe(2 * MOST_CALLERS + 7);
    expect(Object.keys(told["callers"] as object)).toHaveLength(MOST_CALLERS);
    expect(sum("callers") + Number(told["other_callers"])).toBe(told["count"]);
    expect(sum("codes") + Number(told["other_codes"])).toBe(told["count"]);
  });

  test("nothing later changes nothing", () => {
    const first = of({});
    const before = first.told("X");
    first.merge(of());
    expect(first.told("X")).toEqual(before);
  });
});
