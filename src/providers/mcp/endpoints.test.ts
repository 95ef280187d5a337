import { expect, test } from "vitest";
import { MessageEndpoints } from "./endpoints.ts";

const endpoints = (): MessageEndpoints => new MessageEndpoints("mcp.example.com");

test.each([
  ["/message?sessionId=1", "/message?sessionId=1"],
  ["https://mcp.example.com/message", "/message"],
  ["message?x", "/message?x"],
])("%s may be called while its stream is open", (data, target) => {
  const paths = endpoints();
  expect(paths.has(target)).toBe(false);
  const close = paths.open(data);
  expect(paths.has(target)).toBe(true);
  expect(paths.has(`${target}1`)).toBe(false);
  close();
  expect(paths.has(target)).toBe(false);
});

test.each([
  "https://other.example.com/message",
  "http://mcp.example.com/message",
  "https://mcp.example.com:8443/message",
  "//other.example.com/message",
  "/message#x",
  "https://user@other.example.com/",
  "{}",
])("%s is not of the same origin, or no path", (data) => {
  const paths = endpoints();
  paths.open(data);
  expect(paths.has("/message")).toBe(false);
});

test("a path of two streams may be called until both have ended", () => {
  const paths = endpoints();
  const [first, second] = [paths.open("/m"), paths.open("/m")];
  first();
  first();
  expect(paths.has("/m")).toBe(true);
  second();
  expect(paths.has("/m")).toBe(false);
});

test("as many streams as are bounded", () => {
  const paths = endpoints();
  for (let n = 0; n <= 1_000; n += 1) paths.open(`/m?${n}`);
  expect([paths.has("/m?999"), paths.has("/m?1000")]).toEqual([true, false]);
});
