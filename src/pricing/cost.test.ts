import { describe, expect, test } from "vitest";
import { formatUsd, toMicrodollars, toUsdNumber } from "./cost.ts";
import { parsePricePerMillion } from "./price.ts";

describe("parsePricePerMillion", () => {
  test.each([
    ["2.50", 2_500_000n],
    ["0.075", 75_000n],
    ["0.000001", 1n],
    ["0", 0n],
    ["150", 150_000_000n],
    ["9999999.999999", 9_999_999_999_999n],
  ])("%s is exact", (text, picodollars) => expect(parsePricePerMillion(text)).toBe(picodollars));

  test.each([
    "",
    ".5",
    "1.",
    "1e-6",
    "-1",
    "+1",
    "0.0000001",
    "12345678",
    "1,5",
    " 1",
    "NaN",
    "0x1",
  ])("%j is refused", (text) => expect(() => parsePricePerMillion(text)).toThrow(RangeError));
});

test.each([
  [0n, "0"],
  [1n, "0.000000000001"],
  [2_500_000n, "0.0000025"],
  [1_000_000_000_000n, "1"],
  [1_230_000_000_000n, "1.23"],
  [123_456_789_012_345_678_901n, "123456789.012345678901"],
  [-1_500_000_000_000n, "-1.5"],
])("formatUsd(%s) is %s", (picodollars, text) => expect(formatUsd(picodollars)).toBe(text));

test("micro-dollars round up, so that no call is free by rounding", () => {
  expect([0n, 1n, 1_000_000n, 1_000_001n].map(toMicrodollars)).toEqual([0n, 1n, 1n, 2n]);
  expect(toUsdNumber(1_500_000_000_000n)).toBe(1.5);
});
