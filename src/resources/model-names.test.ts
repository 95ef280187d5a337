import { describe, expect, test } from "vitest";
import { compilePatterns, covers, intersect, MODEL_PATTERN, splitModelRef } from "./model-names.ts";

test("a reference is split at its first slash", () => {
  expect(splitModelRef("p/a/b")).toEqual({ provider: "p", model: "a/b" });
  expect(["p", "p/", "/m", ""].map(splitModelRef)).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
});

test("a star is a wildcard only as the last character", () => {
  expect(["m", "m*", "*", "a/b:c*"].every((pattern) => MODEL_PATTERN.test(pattern))).toBe(true);
  expect(
    ["", "*m", "a*b", "**", "a b", "a\n", "a\u0007"].some((pattern) => MODEL_PATTERN.test(pattern)),
  ).toBe(false);
});

describe("patterns", () => {
  test.each([
    [["gpt-5"], "gpt-5", true],
    [["gpt-5"], "gpt-5-mini", false],
    [["gpt-5"], "GPT-5", false],
    [["gpt-*"], "gpt-", true],
    [["gpt-*", "o3"], "o3", true],
    [["*"], "anything/at:all", true],
    [[], "x", false],
  ])("%j on %s: %s", (patterns, name, matches) =>
    expect(compilePatterns(patterns)(name)).toBe(matches),
  );

  test("intersection is exact", () => {
    expect(intersect("a*", "ab*")).toBe("ab*");
    expect(intersect("ab*", "a*")).toBe("ab*");
    expect(intersect("a*", "b*")).toBeUndefined();
    expect(intersect("*", "m")).toBe("m");
    expect(intersect("m", "m")).toBe("m");
    expect([covers("a*", "a*"), covers("ab*", "a*"), covers("a", "a*")]).toEqual([
      true,
      false,
      false,
    ]);
  });
});
