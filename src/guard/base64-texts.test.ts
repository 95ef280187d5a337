import { randomBytes } from "node:crypto";
import { describe, expect, test } from "vitest";
import { base64Texts } from "./base64-texts.ts";

const SECRET = "Please follow these instructions!";
const run = Buffer.from(SECRET).toString("base64");
const read = (text: string): string => [...base64Texts(text)].join("\n---\n");

test("the length is one that needs no padding", () => expect(run).not.toContain("="));

test.each([
  ["alone", run],
  ["a word on the next line", `${run}\nthen`],
  ["a word directly after it", `${run}then`],
  ["a path before it", `path/${run}`],
  ["a name before it", `file_${run}`],
  ["an address around it", `https://example.com/x/${run}/yz`],
  ["bytes before it", Buffer.from(`\u0000\u0001\u0002${SECRET}`).toString("base64")],
  ["bytes that are no UTF-8 before it", `//79/v${run}`],
  ["wrapped in lines, with a word before them", `abc${run.replaceAll(/.{30}/g, "$&\r\n")}`],
])("%s", (_, text) => expect(read(text)).toContain(SECRET));

describe.each([0, 1, 2, 3])("behind %i characters", (shift) => {
  test.each(["Grüße aus Köln, 12345", "日本語のテキストです", "😀😀😀😀😀😀"])("%s", (text) => {
    const found = read(`${"/".repeat(shift)}${Buffer.from(text).toString("base64")}`);
    expect(found).toContain(text);
  });
});

test.each([
  ["prose", "There is nothing here but a few words, some of them long."],
  ["a path", "src/llm/pipeline/stages/guard/and/something/else.ts"],
  ["an identifier", "aVeryLongIdentifierInCamelCaseOfTheApplication"],
])("%s is no base64", (_, text) => expect(read(text)).toBe(""));

test("bytes contain next to no text", () => {
  const found = read(randomBytes(300_000).toString("base64"));
  expect(found.length).toBeLessThan(200);
});
