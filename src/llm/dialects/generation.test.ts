import { describe, expect, test } from "vitest";
import { samplingOf, thinksAdaptively } from "./anthropic/generation.ts";
import { generationOf } from "./gemini/generation.ts";
import { takesSampling } from "./openai/generation.ts";

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

describe("sampling at OpenAI", () => {
  const effort = { kind: "effort", effort: "low" } as const;
  test.each([
    ["gpt-4.1", true, true],
    ["gpt-4o", true, true],
    ["gpt-5-chat-latest", true, true],
    ["gpt-5.2", true, false],
    ["gpt-5.2-codex", true, false],
    ["gpt-5", false, false],
    ["gpt-5-mini", false, false],
    ["o4-mini", false, false],
    ["openai/o3", false, false],
    ["llama-4", true, true],
    ["ollama3", true, true],
  ])("%s takes it: %s; while it reasons: %s", (model, usually, reasoning) => {
    expect(takesSampling(model, undefined)).toBe(usually);
    expect(takesSampling(model, { kind: "off" })).toBe(usually);
    expect(takesSampling(model, effort)).toBe(reasoning);
    expect(takesSampling(model, { kind: "budget", tokens: 1 })).toBe(reasoning);
  });
});

test.each([
  ["claude-3-7-sonnet-20250219", "all"],
  ["claude-opus-4-20250514", "all"],
  ["claude-opus-4-1-20250805", "temperature-or-top-p"],
  ["claude-sonnet-4.5", "temperature-or-top-p"],
  ["anthropic.claude-sonnet-4-6-v1", "temperature-or-top-p"],
  ["claude-opus-4-7", "none"],
  ["claude-sonnet-5-5", "none"],
  ["kimi-k3", "all"],
])("sampling that %s takes: %s", (model, sampling) => {
  expect(samplingOf(model)).toBe(sampling);
});
