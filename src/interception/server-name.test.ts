import { describe, expect, test } from "vitest";
import { boundDomains, compileBoundNames, parseServerName } from "./server-name.ts";

const boundName = compileBoundNames({
  hosts: ["api.github.com", "Example.ORG"],
  patterns: ["*.amazonaws.com", "*.a.b.example"],
});

describe("bound names", () => {
  test.each([
    ["api.github.com", "api.github.com"],
    ["API.GitHub.COM", "api.github.com"],
    ["example.org", "example.org"],
    ["s3.amazonaws.com", "s3.amazonaws.com"],
    ["bucket.s3.eu-central-1.amazonaws.com", "bucket.s3.eu-central-1.amazonaws.com"],
    ["xn--bcher-kva.amazonaws.com", "xn--bcher-kva.amazonaws.com"],
    [`${"a".repeat(63)}.amazonaws.com`, `${"a".repeat(63)}.amazonaws.com`],
    ["x.a.b.example", "x.a.b.example"],
  ])("%s", (sent, name) => {
    expect(boundName(sent)).toBe(name);
  });

  test.each([
    // No name, or not a bound one.
    "",
    ".",
    "github.com",
    "x.api.github.com",
    "api.github.com.evil.example",
    "evilapi.github.com",
    "api-github.com",
    "localhost",
    // A pattern's domain itself, its parents, and names with merely the same ending.
    "amazonaws.com",
    "com",
    "xamazonaws.com",
    "x-amazonaws.com",
    "amazonaws.com.evil.example",
    "a.b.example",
    "b.example",
    // RFC 6066 allows no trailing dot.
    "api.github.com.",
    "s3.amazonaws.com.",
    "api.github.com..",
    // Wildcards are valid in certificates, not from clients.
    "*.amazonaws.com",
    "*",
    "*.github.com",
    "s3*.amazonaws.com",
    // Empty and overlong labels and names.
    ".amazonaws.com",
    "a..amazonaws.com",
    `${"a".repeat(64)}.amazonaws.com`,
    `${"a.".repeat(121)}amazonaws.com`,
    `${"a".repeat(70_000)}.amazonaws.com`,
    // Characters that no host name contains.
    "my_bucket.amazonaws.com",
    "-a.amazonaws.com",
    "a-.amazonaws.com",
    "a b.amazonaws.com",
    " api.github.com",
    "api.github.com ",
    "api.github.com\n",
    "a\t.amazonaws.com",
    "api.github.com:443",
    "user@s3.amazonaws.com",
    "s3.amazonaws.com/x",
    "a%2e.amazonaws.com",
    "a,b.amazonaws.com",
    "a=b.amazonaws.com",
    "CN=x.amazonaws.com",
    '"a".amazonaws.com',
    // NUL truncates a name for readers of C strings.
    "api.github.com\0",
    "api.github.com\0.evil.example",
    "evil.example\0.amazonaws.com",
    "\0.amazonaws.com",
    "\0",
    // Other scripts and look-alikes: only their ASCII form is a valid name. K is the Kelvin sign, ſ
    // and ． fold to ASCII.
    "bücher.amazonaws.com",
    "аpi.github.com",
    "api。github.com",
    "api．github．com",
    "api.gıthub.com",
    "\u212A.amazonaws.com",
    "ſ3.amazonaws.com",
    "a\u00ad.amazonaws.com",
    // Addresses, in every spelling.
    "127.0.0.1",
    "::1",
    "[::1]",
    "2130706433",
    "0x7f000001",
    "0177.0.0.1",
    "127.1",
    "1.2.3.4.amazonaws.com.5",
  ])("not %j", (sent) => {
    expect(boundName(sent)).toBeUndefined();
  });

  test("a name that only JavaScript's objects know is not bound", () => {
    for (const name of ["constructor", "__proto__", "tostring", "has"])
      expect(boundName(name)).toBeUndefined();
  });
});

test.each(["127.0.0.1", "1.2.3.4", "10", "a.0x1f", "a.0x"])(
  "%s is an address, not a name",
  (text) => {
    expect(parseServerName(text)).toBeUndefined();
  },
);

test.each([
  ["10.0.0.1"],
  ["::1"],
  ["*.github.com"],
  ["github.com."],
  ["bücher.example"],
  ["a_b.example"],
  [""],
  ["github.com:443"],
])("%j as a host is refused", (host) => {
  expect(() => compileBoundNames({ hosts: [host], patterns: [] })).toThrow(
    `${JSON.stringify(host)} is not a host name`,
  );
});

test.each([
  ["example.com"],
  ["*"],
  ["*."],
  ["*.com"],
  ["*.*.com"],
  ["a*.example.com"],
  ["*.example.com."],
  ["*.1.2.3.4"],
  ["*example.com"],
])("%j as a pattern is refused", (pattern) => {
  expect(() => compileBoundNames({ hosts: [], patterns: [pattern] })).toThrow(
    `${JSON.stringify(pattern)} is not a host pattern`,
  );
});

test("domains that others hold are not named twice", () => {
  expect(
    boundDomains({
      hosts: ["s3.amazonaws.com", "api.github.com", "API.github.com"],
      patterns: ["*.amazonaws.com", "*.cn.amazonaws.com"],
    }),
  ).toEqual(["amazonaws.com", "api.github.com"]);
});
