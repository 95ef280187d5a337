import { expect, test } from "vitest";
import { MAX_CLASSIFY_CHARS } from "../protocol.ts";
import { parseDataset } from "./dataset.ts";

test("lines are examples; blank ones, CRLF and a byte order mark are not in the way", () => {
  const content =
    '\uFEFF{"text":"a","label":"benign"}\r\n\n  \n{"label":"jailbreak","text":"b\\n"}\n';
  expect(parseDataset(content, "d")).toEqual([
    { text: "a", label: "benign" },
    { text: "b\n", label: "jailbreak" },
  ]);
});

const GOOD = '{"text":"a","label":"benign"}';

test.each([
  ["not JSON", "secret text"],
  ["a string", '"secret"'],
  ["no label", '{"text":"secret"}'],
  ["another label", '{"text":"secret","label":"malicious"}'],
  ["a number", '{"text":1,"label":"benign"}'],
  ["another member", '{"text":"secret","label":"benign","split":"test"}'],
  ["too long", JSON.stringify({ text: "x".repeat(MAX_CLASSIFY_CHARS + 1), label: "benign" })],
  ["two objects", GOOD + GOOD],
])("a line that is wrong (%s) is named, and its text is not shown", (_name, line) => {
  let message = "";
  try {
    parseDataset(`${GOOD}\n\n${line}\n${GOOD}`, "data.jsonl");
  } catch (error) {
    message = (error as Error).message;
  }
  expect(message).toMatch(/^data\.jsonl, line 3: /);
  expect(message).not.toContain("secret");
});

test.each(["", "\n\n"])("a file without a text is an error: %j", (content) => {
  expect(() => parseDataset(content, "data.jsonl")).toThrow("data.jsonl has no line");
});
