/** The names that servers may read in a query or a form. */
import { describe, expect, test } from "vitest";
import { folded, parameterNames, readingsOf } from "./parameter-names.ts";

test.each<[text: string, names: readonly string[]]>([
  ["", []],
  ["a", ["a"]],
  ["a=b", ["a"]],
  ["a=b=c&d", ["a", "d"]],
  ["=b", [""]],
  ["a&&b", ["a", "", "b"]],
  ["a=1;b=2", ["a", "(b)"]],
  ["a=1;b=2;c&d;e", ["a", "(b)", "(c)", "d", "(e)"]],
  [";a", ["", "(a)"]],
  ["a%3Db=c", ["a%3Db"]],
])("of %j are found %j", (text, names) => {
  expect([...parameterNames(text)].map(({ raw, inside }) => (inside ? `(${raw})` : raw))).toEqual(
    names,
  );
});

describe("readings of a name", () => {
  test.each<[raw: string, readings: readonly string[]]>([
    ["Key_1", ["key_1"]],
    ["", [""]],
    ["a-b", ["a_b"]],
    ["a%2Db", ["a%2db", "a_b"]],
    ["%61", ["%61", "a"]],
    ["%2561", ["%2561", "%61", "a"]],
    ["%25252561", ["%25252561", "%252561", "%2561", "%61", "a"]],
    ["a+b", ["a+b", "a_b"]],
    ["+a", ["+a", "a"]],
    ["%u0061", ["%u0061", "a"]],
    ["%u00e9", ["%u00e9", "\u00e9"]],
    ["%ud800", ["%ud800", "\ufffd"]],
    ["%ud83d%ude00", ["%ud83d%ude00", "\ufffd\ufffd"]],
    ["%zz", ["%zz"]],
    ["%", ["%"]],
    ["100%25", ["100%25", "100%"]],
    ["%6", ["%6"]],
    ["%C3%A9", ["%c3%a9", "\u00e9"]],
  ])("%s: %j", (raw, readings) => {
    expect([...(readingsOf(raw) ?? ["unknown"])]).toEqual(readings);
  });

  test.each(["%ff", "a%c3", "%2525252561", "%252525252561", "%25ff"])(
    "%s cannot be told",
    (raw) => {
      expect(readingsOf(raw)).toBeUndefined();
    },
  );
});

test.each([
  ["Key", "key"],
  ["a.b-c d", "a_b_c_d"],
  ["a[]", "a"],
  ["a[b][c]", "a"],
  ["a[\nb", "a"],
  [" a ", "a"],
  ["?a", "a"],
  ["?& ?a", "a"],
  ["a?", "a?"],
  ["a\u0000b", "ab"],
  ["a\u200bb", "ab"],
  ["\ufeffa", "a"],
  ["\uff21\uff3f\uff22", "a_b"],
  ["a [b]", "a"],
])("%j is folded to %j", (name, expected) => {
  expect(folded(name)).toBe(expected);
});
