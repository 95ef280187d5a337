import { expect, test } from "vitest";
import { estimatePromptTokens } from "./prompt-size.ts";

const ask = (content: unknown): object => ({ messages: [{ role: "user", content }] });
const FRAME = estimatePromptTokens(ask(""));

test("text counts by its bytes", () => {
  expect(estimatePromptTokens(ask("a".repeat(300))) - FRAME).toBe(100);
  expect(estimatePromptTokens(ask("漢".repeat(400))) - FRAME).toBe(400);
  expect(estimatePromptTokens(ask("word ".repeat(3_000))) - FRAME).toBe(5_000);
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
  expect(estimatePromptTokens({ ...ask(""), tools }) - FRAME).toBeGreaterThan(1_000);
});

test.each([
  ["a data URL", `data:image/png;base64,${"iVBOR/+0".repeat(100_000)}`],
  ["bare base64", "iVBOR/+0".repeat(100_000)],
  ["base64url", "iVBOR_-0".repeat(100_000)],
])("media count by number, not by bytes: %s", (_name, data) => {
  const one =
    estimatePromptTokens(ask([{ type: "image", data }])) -
    estimatePromptTokens(ask([{ type: "image", data: "" }]));
  expect(one).toBe(1_600);
});

test("a body that nests deeply is no way to stop the gateway", () => {
  const deep: unknown = JSON.parse(`${"[".repeat(5_000)}${"]".repeat(5_000)}`);
  let deeper: unknown = deep;
  for (let i = 0; i < 200_000; i += 1) deeper = [deeper];
  expect(estimatePromptTokens(deeper)).toBe(0);
});
