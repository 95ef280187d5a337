import { describe, expect, test } from "vitest";
import { decodeOnce, parseForm, parseQuery, repeatedName } from "./raw-url.ts";
import { plainSegments } from "./url-path.ts";

describe("an escape", () => {
  test("is decoded once", () => {
    expect(decodeOnce("a%2Fb%252Fc%20+%C3%A9")).toBe("a/b%2Fc +é");
  });

  test.each([
    "%",
    "%2",
    "%zz",
    "%00",
    "%0a",
    "%7f",
    "%c3",
    "%ff",
    "a b",
    "é",
    "\u0001",
    '"',
    "<",
    "\\",
    "^",
    "`",
    "{",
    "|",
  ])("%j is refused", (raw) => {
    expect(decodeOnce(raw)).toBeUndefined();
  });
});

describe("a path", () => {
  test.each([
    ["/", [], false],
    ["/a/b", ["a", "b"], false],
    ["/a/b/", ["a", "b"], true],
    ["/a%20b/c:d@e", ["a b", "c:d@e"], false],
  ])("%s", (path, segments, trailingSlash) => {
    expect(plainSegments(path, { slashes: false })).toEqual({ segments, trailingSlash });
  });

  test("may hold escaped slashes where they are allowed", () => {
    expect(plainSegments("/model/arn%3Aaws%2Fx", { slashes: true })?.segments).toEqual([
      "model",
      "arn:aws/x",
    ]);
    expect(plainSegments("/model/arn%3Aaws%2Fx", { slashes: false })).toBeUndefined();
  });

  test.each([
    "",
    "a",
    "//a",
    "/a//b",
    "/a//",
    "/..",
    "/a/../b",
    "/a/./b",
    "/%2e%2e/b",
    "/a/%2E./b",
    "/a;b",
    "/a%3Bb",
    "/a\\b",
    "/a%5Cb",
    "/a%00",
    "/a%0d%0a",
    "/%61",
    "/a%2D",
    "/a%252Fb",
    "/a+b",
    "/a%3Fb",
    "/a%23b",
    "/a\tb",
    "/é",
  ])("%j is refused", (path) => {
    expect(plainSegments(path, { slashes: false })).toBeUndefined();
  });

  test.each(["/a/x%2F..%2Fy", "/a/%2Fy", "/a/y%2F", "/a/x%2F%2Fy", "/a/%2e%2e%2Fy"])(
    "%j is refused though slashes are allowed",
    (path) => {
      expect(plainSegments(path, { slashes: true })).toBeUndefined();
    },
  );
});

describe("a query", () => {
  test("keeps order, repetitions and empty values", () => {
    expect(parseQuery("b=2&a&b=%26%3D&c=")).toEqual([
      ["b", "2"],
      ["a", ""],
      ["b", "&="],
      ["c", ""],
    ]);
    expect(parseQuery("")).toEqual([]);
  });

  test.each(["a=1;b=2", "a=b+c", "a&&b", "=x", "a=%", "a=%00", "a=é", "&"])(
    "%j is refused",
    (query) => {
      expect(parseQuery(query)).toBeUndefined();
    },
  );

  test("as a form has spaces as plus signs, and text of several lines", () => {
    expect(parseForm(Buffer.from("Action=Publish&Message=a+b%0Ac%2B"))).toEqual([
      ["Action", "Publish"],
      ["Message", "a b\nc+"],
    ]);
  });

  test.each(["a=1;b=2", "a=%ff", "a=\u00e9", "a\n=b", "a=b\n", "a%0a=b"])(
    "as a form: %j is refused",
    (form) => {
      expect(parseForm(Buffer.from(form))).toBeUndefined();
    },
  );

  test("tells a name that stands twice", () => {
    expect(
      repeatedName([
        ["Action", "x"],
        ["action", "y"],
      ]),
    ).toBe("action");
    expect(
      repeatedName([
        ["a", "x"],
        ["b", "x"],
      ]),
    ).toBeUndefined();
  });
});
