import { describe, expect, test } from "vitest";
import { checkOrigin, type OriginRules } from "./origin.ts";

const ANY: OriginRules = { allowedOrigins: new Set(), allowedHosts: undefined };
const STRICT: OriginRules = {
  allowedOrigins: new Set(["https://inspector.example.com"]),
  allowedHosts: new Set(["mcp.example.com"]),
};

const code = (origin: string | undefined, host: string, rules: OriginRules): string | undefined =>
  checkOrigin(origin, host, rules)?.error.code;

describe("clients that are no browsers", () => {
  test("may use any host by default", () => {
    for (const host of ["mcp.example.com", "10.0.0.1:8080", "[::1]:80", ""])
      expect(code(undefined, host, ANY)).toBeUndefined();
  });

  test.each([
    ["mcp.example.com", undefined],
    ["MCP.Example.COM.:443", undefined],
    ["localhost:8080", undefined],
    ["127.9.9.9", undefined],
    ["[::1]:8080", undefined],
    ["evil.example", "host_not_allowed"],
    ["mcp.example.com.evil.example", "host_not_allowed"],
    ["evil.example:mcp.example.com", "host_not_allowed"],
    ["mcp.example.com@evil.example", "host_not_allowed"],
    ["localhost.evil.example", "host_not_allowed"],
    ["127.0.0.1.evil.example", "host_not_allowed"],
    ["[::2]", "host_not_allowed"],
    ["", "host_not_allowed"],
  ])("with --mcp-allowed-host: %j is %s", (host, expected) => {
    expect(code(undefined, host, STRICT)).toBe(expected);
  });
});

describe("web pages", () => {
  test.each([
    ["https://inspector.example.com", "mcp.example.com", undefined],
    ["https://mcp.example.com", "mcp.example.com", undefined],
    ["http://localhost:8080", "localhost:8080", undefined],
    ["http://localhost:9", "localhost:8080", "origin_not_allowed"],
    ["https://INSPECTOR.example.com", "mcp.example.com", "origin_not_allowed"],
    ["https://inspector.example.com.evil.example", "mcp.example.com", "origin_not_allowed"],
    ["http://inspector.example.com", "mcp.example.com", "origin_not_allowed"],
    ["https://inspector.example.com:444", "mcp.example.com", "origin_not_allowed"],
    ["null", "mcp.example.com", "origin_not_allowed"],
    ["", "mcp.example.com", "origin_not_allowed"],
    ["http://evil.example", "evil.example", "origin_not_allowed"],
    ["https://inspector.example.com", "evil.example", "host_not_allowed"],
  ])("%j at %j: %s", (origin, host, expected) => {
    expect(code(origin, host, STRICT)).toBe(expected);
  });

  test("a page that was rebound to our address is refused by default", () => {
    expect(code("http://evil.example:8080", "evil.example:8080", ANY)).toBe("origin_not_allowed");
    expect(code("http://localhost:8080", "localhost:8080", ANY)).toBeUndefined();
  });
});
