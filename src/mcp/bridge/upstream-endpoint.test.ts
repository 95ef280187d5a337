import { expect, test } from "vitest";
import { EndpointError, resolveEndpoint } from "./upstream-endpoint.ts";

const resolve = (data: string, host = "mcp.test"): string =>
  resolveEndpoint(data, host, "/base/sse?tenant=1");

test.each([
  ["/messages?sessionId=1", "/messages?sessionId=1"],
  ["messages/?session_id=1", "/base/messages/?session_id=1"],
  ["?sessionId=1", "/base/sse?sessionId=1"],
  ["https://mcp.test/messages", "/messages"],
  ["https://mcp.test:443/messages", "/messages"],
  ["https://MCP.test/messages", "/messages"],
  // A server behind a proxy that ends TLS.
  ["http://mcp.test/messages", "/messages"],
  ["/a/../b", "/b"],
  ["/messages#fragment", "/messages"],
  ["/messages?next=https://evil.test", "/messages?next=https://evil.test"],
])("%s", (data, expected) => {
  expect(resolve(data)).toBe(expected);
});

test("with a port", () => {
  expect(resolve("http://mcp.test:3001/messages", "mcp.test:3001")).toBe("/messages");
});

test.each([
  "https://evil.test/messages",
  "//evil.test/messages",
  "\\\\evil.test\\messages",
  "/\\evil.test/messages",
  "https:\\\\evil.test/messages",
  " //evil.test/messages",
  "/\t/evil.test/messages",
  "https://mcp.test@evil.test/messages",
  "https://user:password@mcp.test/messages",
  "https://mcp.test.evil.test/messages",
  "https://mcp.test:8443/messages",
  "http://mcp.test:8080/messages",
  "javascript:alert(1)",
  "file:///etc/passwd",
  "unix:/run/x.sock",
  "https://",
  "http://[",
  `/${"x".repeat(9_000)}`,
])("refused: %j", (data) => {
  expect(() => resolve(data)).toThrow(EndpointError);
});
