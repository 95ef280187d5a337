import { expect, test } from "vitest";
import { oneLine } from "./one-line.ts";

test.each(["\n", "\r", "\r\n", "\n\n"])("white space with %j becomes spaces", (gap) => {
  const json = `{"a":${gap}{"method":"tools/call"}${gap}}`;
  const line = oneLine(json);
  expect(line).not.toMatch(/[\n\r]/);
  expect(JSON.parse(line)).toEqual(JSON.parse(json));
});

test.each(["\u0085", "\u2028", "\u2029"])("%j in a text is escaped", (char) => {
  const line = oneLine(JSON.stringify({ a: `x${char}y` }));
  expect(line).toMatch(/^[\x20-\x7e]*$/);
  expect(JSON.parse(line)).toEqual({ a: `x${char}y` });
});

test("escapes stay as they are", () => {
  const json = String.raw`{"a":"\n\r\\n\u2028"}`;
  expect(oneLine(json)).toBe(json);
});
