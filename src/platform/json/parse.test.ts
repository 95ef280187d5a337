import { describe, expect, test } from "vitest";
import { parseJson, parseScanned } from "./parse.ts";
import { JsonError, type JsonMember, scanJson } from "./scan.ts";

const parse = (text: string): unknown => parseJson(Buffer.from(text)).value;

/** Returns the keys as V8 reads them, or as our reader does: by what it says of the keys. */
const keys = (value: unknown): string[] => Object.keys(value as object);

describe("keys that are written with escapes", () => {
  test("are what they say, whatever was parsed before", () => {
    // After parsing these, V8 has seen objects whose next key is a backslash.
    for (const seed of ['{"model":"m","\\\\":1}', '{"a":{"b":1,"\\\\":1}}', '{"\\\\":1}']) {
      JSON.parse(seed);
    }
    expect(keys(parse('{"model":"m","\\u0073tream":true}'))).toEqual(["model", "stream"]);
    expect(parse('{"a":{"b":1,"\\u0063":2}}')).toEqual({ a: { b: 1, c: 2 } });
    expect(keys(parse('{"\\u006dodel":1}'))).toEqual(["model"]);
  });

  test("are read wherever they are", () => {
    const text =
      '{"x":[{"\\u57ce\\u5e02":"Rome","plain":{"\\u00e9\\"\\\\":[1]}}],"\\ud83d\\ude00":0}';
    expect(parse(text)).toEqual({ x: [{ 城市: "Rome", plain: { 'é"\\': [1] } }], "😀": 0 });
  });

  test.each([
    '{"\\\\":1}',
    '{"\\"":1}',
    '{"\\n":1}',
    '{"a":[{"\\u0000":1}]}',
    '{"\\ud800":1}',
    '{"\\udc00x":1}',
  ])("%s is refused: its first character needs an escape", (text) => {
    expect(() => parse(text)).toThrow(JsonError);
    expect(() => parse(text)).toThrow(/a key that begins with an escape/);
  });
});

test.each(['"\u0000"', '["\n"]', `["${"x".repeat(100)}\n"]`])("%j: a control character", (text) => {
  expect(() => parse(text)).toThrow("a control character in a string");
});

test("one value of a text is parsed by itself, its keys written plain", () => {
  const bytes = Buffer.from('{"a":{"\\u0062":1,"c\\u0064":[2]},"\\u0065":{"f\\u0067":3}}');
  const scan = scanJson(bytes);
  const [first, second] = scan.members ?? [];
  const value = (member: JsonMember | undefined) =>
    parseScanned(bytes, scan, member?.valueStart, member?.valueEnd);
  expect(value(first)).toEqual({ b: 1, cd: [2] });
  expect(value(second)).toEqual({ fg: 3 });
});
