import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { expectLinear } from "../../platform/testing-work.ts";
import { overlapping, pieces } from "./pieces.ts";
import { windowsOf } from "./windows.ts";

const LONE = /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/;

describe("pieces", () => {
  test.each<[string, number, readonly string[]]>([
    ["", 4, []],
    ["abcd", 4, ["abcd"]],
    ["abcde", 4, ["abcd", "e"]],
    ["abc def", 4, ["abc", " def"]],
    ["abcd ef", 4, ["abcd", " ef"]],
    ["a bcdefg", 6, ["a bcde", "fg"]],
    ["ab😀cd", 3, ["ab", "😀c", "d"]],
  ])("%j of at most %j", (text, max, expected) => {
    expect([...pieces(text, max)]).toEqual(expected);
  });

  test("are the whole text, cut at no character", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "grapheme", maxLength: 80 }),
        fc.integer({ min: 2, max: 20 }),
        (text, max) => {
          const found = [...pieces(text, max)];
          expect(found.join("")).toBe(text);
          expect(found.every((piece) => piece.length <= max && !LONE.test(piece))).toBe(true);
        },
      ),
    );
  });

  test("with an overlap: a pattern that is not longer than it is whole in one of them", () => {
    fc.assert(
      fc.property(
        fc.nat(400),
        fc.nat(400),
        fc.constantFrom("x", " x", "😀"),
        (before, after, part) => {
          const text = `${part.repeat(before)}PATTERN${part.repeat(after)}`;
          const found = [...overlapping(text, 40, 10)];
          expect(found.some((piece) => piece.includes("PATTERN"))).toBe(true);
          expect(found.every((piece) => piece.length <= 40 && !LONE.test(piece))).toBe(true);
        },
      ),
    );
  });

  test.each(["x", " ", "😀", "\ud83d", "word "])("take linear time for many %j", (part) => {
    expectLinear((size) => {
      const text = part.repeat(size);
      return () => [...pieces(text, 64), ...overlapping(text, 64, 8)].length;
    }, 4_000);
  });
});

/** Each character is a token. */
const tokensOf = (piece: string): number[] =>
  Array.from(piece).map((letter) => letter.charCodeAt(0));
const windows = (text: string, size: number, overlap: number): string[] =>
  [...windowsOf(text, { tokensOf, size, overlap })].map((window) => String.fromCharCode(...window));

describe("windows", () => {
  test.each<[string, number, number, readonly string[]]>([
    ["", 4, 1, []],
    ["a", 4, 1, ["a"]],
    ["abcd", 4, 1, ["abcd"]],
    ["abcde", 4, 1, ["abcd", "bcde"]],
    ["abcdefg", 4, 1, ["abcd", "defg"]],
    ["abcdefgh", 4, 1, ["abcd", "defg", "efgh"]],
    ["abcdef", 4, 0, ["abcd", "cdef"]],
    ["abcdefgh", 4, 0, ["abcd", "efgh"]],
  ])("%j in windows of %d with %d in common", (text, size, overlap, expected) => {
    expect(windows(text, size, overlap)).toEqual(expected);
  });

  test("are the same whether the text is tokenised at once or in pieces", () => {
    const text = Array.from({ length: 9_000 }, (_, index) =>
      String.fromCharCode(97 + (index % 26)),
    ).join("");
    const expected: string[] = [];
    for (let start = 0; start + 510 < text.length; start += 446)
      expected.push(text.slice(start, start + 510));
    expected.push(text.slice(-510));
    expect(windows(text, 510, 64)).toEqual(expected);
  });

  test("each pair of neighbours is in one window, exactly because of the overlap", () => {
    const text = Array.from({ length: 300 }, (_, index) => String.fromCharCode(200 + index)).join(
      "",
    );
    const missing = (overlap: number): number => {
      const found = windows(text, 32, overlap);
      return Array.from({ length: 299 }, (_, index) => text.slice(index, index + 2)).filter(
        (pair) => !found.some((window) => window.includes(pair)),
      ).length;
    };
    expect(missing(1)).toBe(0);
    expect(missing(0)).toBeGreaterThan(0);
  });

  test("a text is tokenised only as far as its windows are taken", () => {
    let tokenised = 0;
    const found = windowsOf("word ".repeat(50_000), {
      size: 510,
      overlap: 64,
      tokensOf: (piece) => {
        tokenised += piece.length;
        return tokensOf(piece);
      },
    });
    found.next();
    expect(tokenised).toBeLessThanOrEqual(1_024);
  });

  test("pieces without a token have no window", () => {
    expect([...windowsOf(" ".repeat(20_000), { tokensOf: () => [], size: 8, overlap: 2 })]).toEqual(
      [],
    );
  });
});
