import { expect, test } from "vitest";
import { scanJson } from "../../platform/json/scan.ts";
import { estimatePromptTokens } from "./prompt-size.ts";

const tokensOf = (body: object): number =>
  estimatePromptTokens(scanJson(Buffer.from(JSON.stringify(body))).size);
const ask = (content: unknown): object => ({ messages: [{ role: "user", content }] });
const FRAME = tokensOf(ask(""));

test("text counts by its bytes", () => {
  expect(tokensOf(ask("a".repeat(300))) - FRAME).toBe(100);
  expect(tokensOf(ask("漢".repeat(400))) - FRAME).toBe(400);
  expect(tokensOf(ask("word ".repeat(3_000))) - FRAME).toBe(5_000);
  expect(FRAME).toBeLessThan(10);
});

test("names of fields count: a tool's schema is part of the prompt", () => {
  const tools = [
    {
      type: "function",
      function: {
        name: "f",
        parameters: { properties: { ["x".repeat(4_000)]: { type: "string" } } },
      },
    },
  ];
  expect(tokensOf({ ...ask(""), tools }) - FRAME).toBeGreaterThan(1_000);
});

test.each([
  ["a data URL", `data:image/png;base64,${"iVBOR/+0".repeat(100_000)}`],
  ["bare base64", "iVBOR/+0".repeat(100_000)],
  ["base64url", "iVBOR_-0".repeat(100_000)],
  ["base64 with escaped slashes", "iVBOR\\/+0".repeat(100_000)],
])("files count by number, not by bytes: %s", (_name, data) => {
  const file = (content: string) =>
    `{"messages":[{"content":[{"type":"image","data":"${content}"}]}]}`;
  const tokens = (text: string) => estimatePromptTokens(scanJson(Buffer.from(text)).size);
  expect(tokens(file(data)) - tokens(file(""))).toBe(1_600);
});

test.each([
  ["a text", ask("A".repeat(300_000))],
  ["a part", ask([{ type: "text", text: "A".repeat(300_000) }])],
  ["an item of a list", { data: ["A".repeat(300_000)] }],
  ["an item behind a file's key", { data: [{ data: "x" }, "A".repeat(300_000)] }],
  ["words in a file's place", ask([{ data: `${"A".repeat(1_000)} ${"A".repeat(299_000)}` }])],
])("%s that looks like base64 is no file", (_name, body) => {
  expect(tokensOf(body)).toBeGreaterThanOrEqual(100_000);
});

test("escapes count by what they stand for, or more", () => {
  const tokens = (text: string) => estimatePromptTokens(scanJson(Buffer.from(text)).size);
  const escaped = (text: string) => `["${text.repeat(3_000)}"]`;
  expect(tokens(escaped("\\n"))).toBe(1_000);
  expect(tokens(escaped("\\u6f22"))).toBe(3_000);
});
