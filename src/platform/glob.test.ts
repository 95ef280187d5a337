import { describe, expect, test } from "vitest";
import { compilePathGlob, compileWildcard } from "./glob.ts";
import { expectLinear } from "./testing-work.ts";

const EXACT = { ignoreCase: false };

/** All texts of these characters, up to a length. */
function texts(characters: string, length: number): string[] {
  const all = [""];
  for (let from = 0, n = 0; n < length; n++) {
    const to = all.length;
    for (; from < to; from++) for (const one of characters) all.push(`${all[from]}${one}`);
  }
  return all;
}

const escaped = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");

describe("wildcards", () => {
  test("every short pattern means what the regular expression means", () => {
    for (const pattern of texts("ab*", 4)) {
      const regex = new RegExp(`^${pattern.split("*").map(escaped).join("[^]*")}$`);
      const matches = compileWildcard(pattern, EXACT);
      for (const text of texts("ab", 5)) {
        expect([pattern, text, matches(text)]).toEqual([pattern, text, regex.test(text)]);
      }
    }
  });

  test.each(["a.b", "a?b", "[ab]", "{a,b}", "a|b", "(a)", "^a$", "\\a"])(
    "%s has nothing special in it",
    (pattern) => {
      expect(compileWildcard(pattern, EXACT)(pattern)).toBe(true);
      expect(compileWildcard(pattern, EXACT)("a")).toBe(false);
    },
  );

  test("a line end is a character", () => {
    expect(compileWildcard("a*c", EXACT)("a\n\r\u2028c")).toBe(true);
    expect(compileWildcard("a", EXACT)("a\n")).toBe(false);
  });

  test("case", () => {
    expect(compileWildcard("S3:Get*", { ignoreCase: true })("s3:GETObject")).toBe(true);
    expect(compileWildcard("S3:Get*", EXACT)("s3:GETObject")).toBe(false);
    expect(compileWildcard("k*", { ignoreCase: true })("\u212aey")).toBe(false);
  });
});

describe("path globs", () => {
  /** The same by a regular expression, segment by segment. */
  function reference(glob: string): RegExp {
    const segments = glob.split("/").map((segment, index, all) => {
      const last = index === all.length - 1;
      if (segment === "**") return last ? "[^/]*(?:/[^/]*)*" : "(?:[^/]*/)*";
      if (/^\*+$/.test(segment)) return last ? "[^/]+" : "[^/]+/";
      return segment.split("*").map(escaped).join("[^/]*") + (last ? "" : "/");
    });
    return new RegExp(`^${segments.join("")}$`);
  }

  test("every short pattern means what the regular expression means", () => {
    for (const glob of texts("a/*", 5)) {
      const regex = reference(glob);
      const matches = compilePathGlob(glob, EXACT);
      for (const text of texts("a/b", 4)) {
        expect([glob, text, matches(text)]).toEqual([glob, text, regex.test(text)]);
      }
    }
  });

  test.each([
    ["/repos/**", "/repos", false],
    ["/repos/**", "/repos/", true],
    ["/repos/**", "/repos/a/b", true],
    ["/a/**/b", "/a/b", true],
    ["/a/**/b", "/a/x/y/b", true],
    ["/a/**/b", "/a/x/yb", false],
    ["/a/**/b/**/c", "/a/b/x/b/y/c", true],
    ["/a/**/b/c/**", "/a/b/x/b/c", false],
    ["/a/**/b/c/**", "/a/b/x/b/c/", true],
    ["/a/*", "/a/", false],
    ["/a/*", "/a/b", true],
    ["/a/*", "/a/b/", false],
    ["/a/x*", "/a/x", true],
    ["/a/x**", "/a/xb/c", false],
    ["**", "/a/b", true],
    ["/**", "a", false],
  ])("%s on %s: %s", (glob, path, expected) => {
    expect(compilePathGlob(glob, EXACT)(path)).toBe(expected);
  });
});

test("texts that are made to be slow take linear work", () => {
  const wild = compileWildcard("a*a*a*a*a*b", EXACT);
  const path = compilePathGlob("/**/a/**/a/**/*a*a*a/**/b", EXACT);
  for (const make of [
    (size: number) => "a".repeat(size),
    (size: number) => "/a".repeat(size / 2),
    (size: number) => `/${"a".repeat(size)}/`,
    (size: number) => "/".repeat(size),
  ]) {
    expectLinear((size) => {
      const text = make(size);
      return () => [wild(text), path(text)];
    }, 2_000);
  }
});
