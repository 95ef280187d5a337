import { expect, test } from "vitest";
import { thinksAdaptively } from "./anthropic/generation.ts";
import { generationOf } from "./gemini/generation.ts";

test.each([
  ["claude-3-7-sonnet-20250219", false],
  ["claude-opus-4-20250514", false],
  ["claude-sonnet-4-0", false],
  ["claude-haiku-4-5-20251001", false],
  ["claude-sonnet-4.5", false],
  ["claude-opus-4-6", true],
  ["anthropic.claude-sonnet-4-6-v1", true],
  ["claude-opus-4-7-20260401", true],
  ["claude-opus-5", true],
  ["claude-haiku-5-5", true],
  ["claude-fable-5-1", true],
  ["my-alias", true],
])("%s thinks adaptively: %s", (model, adaptive) => {
  expect(thinksAdaptively(model)).toBe(adaptive);
});

test.each([
  ["gemini-2.5-flash", 2],
  ["models/gemini-1.5-pro", 1],
  ["gemini-3-pro-preview", 3],
  ["gemini-3.8-flash", 3],
  ["my-alias", 3],
])("%s is of generation %i", (model, generation) => {
  expect(generationOf(model)).toBe(generation);
});
