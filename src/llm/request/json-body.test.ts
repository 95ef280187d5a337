/** The body of a request: its members on demand. */
import { describe, expect, test } from "vitest";
import { BadRequestError } from "../dialects/dialect.ts";
import { JsonBody } from "./json-body.ts";

const read = (text: string): JsonBody => JsonBody.read(Buffer.from(text));

describe("a member", () => {
  const text = '{ "model" : "m\\u0061", "n": 2.50, "nested": {"model": "other"}, "none": null }';

  test.each([
    ["model", "ma"],
    ["n", 2.5],
    ["nested", { model: "other" }],
    ["none", null],
    ["missing", undefined],
    ["", undefined],
  ])("%s is %j, before and after the whole is parsed", (key, expected) => {
    const body = read(text);
    expect(body.get(key)).toEqual(expected);
    expect(Object.keys(body.value)).toEqual(["model", "n", "nested", "none"]);
    expect(body.get(key)).toEqual(expected);
    body.forgetValue();
    expect(body.get(key)).toEqual(expected);
  });

  test("is found by its name, and shown as it was written", () => {
    const body = read(text);
    expect(body.members.map(({ key }) => key)).toEqual(["model", "n", "nested", "none"]);
    const member = body.member("n");
    expect(member && body.text(member)).toBe("2.50");
    expect(body.member("other")).toBeUndefined();
  });
});

test("the whole is parsed once, until it is forgotten", () => {
  const body = read('{"a":{}}');
  const { value } = body;
  expect(body.value).toBe(value);
  expect(body.get("a")).toBe(value["a"]);
  body.forgetValue();
  expect(body.value).not.toBe(value);
  expect(body.value).toEqual(value);
});

test.each([
  "",
  " ",
  "[]",
  '"text"',
  "null",
  "1",
  "{",
  "{}x",
  "{'a':1}",
  '{"model":"a","model":"b"}',
  '{"model":"a","mod\\u0065l":"b"}',
  '\uFEFF{"a":1}',
])("%j is refused", (text) => {
  expect(() => read(text)).toThrow(BadRequestError);
});

test("bytes that are not UTF-8 are refused", () => {
  expect(() => JsonBody.read(Buffer.from('{"a":"\xff"}', "latin1")).value).toThrow(BadRequestError);
});

test("a control character in a text is refused when the text is read", () => {
  expect(() => read('{"a":"x\ny"}').get("a")).toThrow(BadRequestError);
  expect(() => read('{"a":"x\ny"}').value).toThrow(BadRequestError);
});
