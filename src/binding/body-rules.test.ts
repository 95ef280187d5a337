/** Which requests Envoy reads to the end, by the regular expressions that it is given. */
import { describe, expect, test } from "vitest";
import type { SidecarBodyRule } from "../envoy/config/sidecar.ts";
import type { BodyRule } from "../providers/contract.ts";
import { compileBodyRules, FORMS } from "./body-rules.ts";

const RULE: BodyRule = { hosts: [], methods: ["POST"], paths: ["/things"], maxBytes: 100 };

interface Asked {
  readonly host?: string;
  readonly path?: string;
  readonly type?: string;
}

/** Returns the bytes that the first rule reads that matches, as Envoy matches: the whole text. */
function bytesOf(rules: readonly SidecarBodyRule[], asked: Asked): number | undefined {
  const { host = "api.example.com", path = "/things", type = "" } = asked;
  const matches = (pattern: string | undefined, text: string): boolean => {
    if (pattern === undefined) return true;
    const flags = pattern.startsWith("(?i)") ? "i" : "";
    return new RegExp(`^(?:${pattern.replace(/^\(\?i\)/, "")})$`, flags).test(text);
  };
  return rules.find(
    (rule) =>
      matches(rule.authority, host) && matches(rule.path, path) && matches(rule.contentType, type),
  )?.maxBytes;
}

function reads(rule: Partial<BodyRule>, asked: Asked, hosts = ["api.example.com"]): boolean {
  return bytesOf(compileBodyRules([{ ...RULE, ...rule }], hosts), asked) !== undefined;
}

describe("hosts", () => {
  test.each([
    ["api.example.com", true],
    ["api.example.com:443", true],
    ["api.example.com:80", true],
    ["api.example.com:8443", false],
    ["apixexample.com", false],
    ["x.api.example.com", false],
    ["api.example.com.evil.test", false],
  ])("without its own, a rule is for the binding's: %s", (host, expected) => {
    expect(reads({}, { host })).toBe(expected);
  });

  test.each([
    ["a.example.com", true],
    ["a.b.example.com:443", true],
    ["example.com", false],
    [".example.com", false],
    ["a.examplexcom", false],
  ])("a pattern is for every host below it: %s", (host, expected) => {
    expect(reads({}, { host }, ["*.example.com"])).toBe(expected);
  });

  test("its own hosts are instead of the binding's", () => {
    const rule = { hosts: ["one.example.com", "two.example.com"] };
    expect(reads(rule, { host: "two.example.com" })).toBe(true);
    expect(reads(rule, { host: "api.example.com" })).toBe(false);
  });
});

describe("paths", () => {
  test.each([
    ["/things", "/things", true],
    ["/things", "/things/1", false],
    ["/things/{}/parts", "/things/1/parts", true],
    ["/things/{}/parts", "/things/1/2/parts", false],
    ["/things/{}/parts", "/things//parts", false],
    ["/things/*", "/things/1/2", true],
    ["/things/*", "/thing", false],
    ["*/parts", "/things/1/parts", true],
    ["*/parts", "/things/1/parts/2", false],
    ["*:batch", "/things:batch", true],
    ["/a.b", "/axb", false],
    ["/a$b(c)|d", "/a$b(c)|d", true],
    ["/a$b(c)|d", "d", false],
  ])("%s on %s: %s", (template, path, expected) => {
    expect(reads({ paths: [template] }, { path })).toBe(expected);
  });

  test("any of several", () => {
    const paths = ["/a", "/b/*"];
    expect(reads({ paths }, { path: "/b/1" })).toBe(true);
    expect(reads({ paths }, { path: "/c" })).toBe(false);
    expect(reads({ paths }, { path: "/a/b/1" })).toBe(false);
  });
});

describe("exceptions are left unread", () => {
  test("of hosts, with or without a port", () => {
    const rule = { exceptHosts: "raw\\.example\\.com|up\\.example\\.com" };
    const hosts = ["*.example.com"];
    expect(reads(rule, { host: "raw.example.com" }, hosts)).toBe(false);
    expect(reads(rule, { host: "up.example.com:443" }, hosts)).toBe(false);
    expect(reads(rule, { host: "api.example.com" }, hosts)).toBe(true);
  });

  test("of paths", () => {
    const rule = { paths: ["/*"], exceptPaths: "/raw/.*" };
    expect(reads(rule, { path: "/raw/1" })).toBe(false);
    expect(reads(rule, { path: "/things" })).toBe(true);
    expect(reads(rule, { path: "/raw/1", host: "other.example.com" })).toBe(false);
  });

  test("of types, in any case", () => {
    const rule = { exceptContentTypes: "image/.*|video/.*" };
    expect(reads(rule, { type: "Image/PNG" })).toBe(false);
    expect(reads(rule, { type: "application/json" })).toBe(true);
    expect(reads(rule, {})).toBe(true);
  });

  test("for the methods and the hosts of the rule alone", () => {
    const rules = compileBodyRules([{ ...RULE, exceptPaths: "/raw" }], ["api.example.com"]);
    expect(rules).toEqual([
      { ...rules[1], path: "/raw", maxBytes: undefined },
      {
        authority: "(?:api\\.example\\.com)(?::443|:80)?",
        methods: ["POST"],
        path: "(?:/things)",
        contentType: undefined,
        maxBytes: 100,
      },
    ]);
  });
});

test("several rules keep their order", () => {
  const rules = compileBodyRules(
    [RULE, { ...RULE, paths: ["/*"], maxBytes: 7 }],
    ["api.example.com"],
  );
  expect(bytesOf(rules, { path: "/things" })).toBe(100);
  expect(bytesOf(rules, { path: "/other" })).toBe(7);
});

describe("forms are read wherever no rule reads them", () => {
  test.each([
    ["application/x-www-form-urlencoded", true],
    ["Application/X-WWW-Form-URLEncoded", true],
    ["application/x-www-form-urlencoded; charset=utf-8", true],
    ["application/x-www-form-urlencoded \t;charset=utf-8", true],
    ["application/x-www-form-urlencoded-not", false],
    ["application/json", false],
  ])("%s: %s", (type, expected) => {
    expect(bytesOf([FORMS], { host: "any.test", path: "/any?x=1", type }) !== undefined).toBe(
      expected,
    );
  });

  test("of POST, up to 16 MiB", () => {
    expect(FORMS).toMatchObject({ methods: ["POST"], maxBytes: 16 << 20 });
  });
});
