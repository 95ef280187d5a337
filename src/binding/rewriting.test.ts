/** Requests that ask to be treated as other requests. */
import { describe, expect, test } from "vitest";
import { request } from "../providers/testing.ts";
import { asksForAnother, isStripped, REFUSED_HEADERS } from "./rewriting.ts";

const FORM = "application/x-www-form-urlencoded";

function asks(query: string, headers: Record<string, string> = {}, body?: string): boolean {
  const line = `POST https://api.example.com/things${query}`;
  return (
    asksForAnother(request(line, { headers, ...(body !== undefined && { body }) })) !== undefined
  );
}

describe("by a header", () => {
  test.each([...REFUSED_HEADERS])("%s", (name) => {
    expect(asks("", { [name]: "x" })).toBe(true);
  });

  test.each(["accept", "x-methods", "method"])("not by %s", (name) => {
    expect(asks("", { [name]: "x" })).toBe(false);
  });
});

describe("by a parameter of the query", () => {
  test.each(["?_method=DELETE", "?a=b&X-HTTP-Method-Override=PUT", "?%5Fmethod=PUT", "?$method=x"])(
    "%s",
    (query) => {
      expect(asks(query)).toBe(true);
    },
  );

  test.each(["", "?method=x", "?my_method=x", "?a=_method"])("not by %j", (query) => {
    expect(asks(query)).toBe(false);
  });
});

describe("by a parameter of a form", () => {
  test.each([FORM, ` ${FORM}`, `\t${FORM}; charset=utf-8`, FORM.toUpperCase()])(
    "that is declared as %j",
    (type) => {
      expect(asks("", { "content-type": type }, "a=b&_method=DELETE")).toBe(true);
      expect(asks("", { "content-type": type }, "a=b")).toBe(false);
    },
  );

  test.each(["application/json", `x-${FORM}`, `${FORM}x`])(
    "not if it is declared as %j",
    (type) => {
      expect(asks("", { "content-type": type }, "_method=DELETE")).toBe(false);
    },
  );

  test("not if it was not read, or declares nothing", () => {
    expect(asks("", { "content-type": FORM })).toBe(false);
    expect(asks("", {}, "_method=DELETE")).toBe(false);
  });

  test("by more encoded names than are read", () => {
    const form = (count: number): string => "%61=1&".repeat(count);
    const headers = { "content-type": FORM };
    expect(asks("", headers, form(1_000))).toBe(false);
    expect(asks("", headers, "%6dethods=1&".repeat(10_001))).toBe(true);
  });
});

describe("by a name that is encoded", () => {
  const headers = { "content-type": FORM };

  test.each([
    "%255fmethod=PUT",
    "_met%68od=PUT",
    "a=b;_method=PUT",
    "+_method=PUT",
    "_method%5B%5D=PUT",
    "_method%00=PUT",
    "\u200b_method=PUT",
    "%uFF3Fmethod=PUT",
    "x.http.method=PUT",
  ])("in a form, and in the query: %s", (text) => {
    expect(asks("", headers, text)).toBe(true);
    expect(asks(`?${text}`)).toBe(true);
  });

  test.each(["%ff=1", "%25252525255fmethod=1", "%ffmethod=1"])(
    "that cannot be interpreted, in a form only: %s",
    (text) => {
      expect(asks("", headers, text)).toBe(true);
      expect(asks("", headers, `${text}&a=b`)).toBe(true);
      expect(asks(`?${text}`)).toBe(false);
    },
  );

  test("not if what cannot be interpreted is a value", () => {
    expect(asks("", headers, "a=%ff&b=_method")).toBe(false);
  });

  test("not if it is longer than every name of the list", () => {
    const long = (length: number): string => `%ff${"x".repeat(length - 3)}=1`;
    expect(asks("", headers, long(1_000))).toBe(true);
    expect(asks("", headers, long(1_001))).toBe(false);
    expect(asks("", headers, `${long(1_001)}&_method=PUT`)).toBe(true);
  });

  test("exactly so many encoded names are read", () => {
    expect(asks("", headers, "%61=1&".repeat(10_000))).toBe(false);
    expect(asks("", headers, "%61=1&".repeat(10_001))).toBe(true);
    expect(asks("", headers, `${"%61=1&".repeat(9_999)}_method=PUT`)).toBe(true);
    expect(asks(`?${"%61=1&".repeat(10_001)}`)).toBe(false);
  });
});

test.each([
  ["forwarded", true],
  ["x-forwarded-host", true],
  ["x-forwarded", true],
  ["x-real-ip", true],
  ["x-forward", false],
  ["accept", false],
])("what proxies say of the connection is removed: %s %s", (name, expected) => {
  expect(isStripped(name)).toBe(expected);
});
