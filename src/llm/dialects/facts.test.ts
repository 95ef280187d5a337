import { describe, expect, test } from "vitest";
import { BadRequestError } from "./dialect.ts";
import { redactSecrets } from "./redact.ts";
import { JsonBody } from "../request/json-body.ts";
import { dialects } from "./registry.ts";

const bodyOf = (value: unknown): JsonBody => JsonBody.read(Buffer.from(JSON.stringify(value)));

describe("facts of a request", () => {
  test("openai", () => {
    expect(
      dialects.openai.readFacts(
        bodyOf({
          model: "a/b",
          stream: true,
          max_tokens: 5,
          max_completion_tokens: 7,
          stream_options: { include_usage: true },
        }),
      ),
    ).toEqual({
      model: "a/b",
      stream: true,
      maxOutputTokens: 7,
      choices: 1,
      reasoning: { kind: "unspecified" },
      wantsUsage: true,
    });
    expect(
      dialects.openai.readFacts(bodyOf({ model: "m", stream: null, stream_options: null })),
    ).toEqual({
      model: "m",
      stream: false,
      maxOutputTokens: undefined,
      choices: 1,
      reasoning: { kind: "unspecified" },
      wantsUsage: false,
    });
  });

  test("anthropic", () => {
    expect(dialects.anthropic.readFacts(bodyOf({ model: "m", max_tokens: 5 }))).toEqual({
      model: "m",
      stream: false,
      maxOutputTokens: 5,
      choices: 1,
      reasoning: { kind: "off" },
      wantsUsage: true,
    });
  });

  test.each([
    { generationConfig: { maxOutputTokens: 5 } },
    { generation_config: { max_output_tokens: 5 } },
  ])("gemini %j", (body) => {
    expect(dialects.gemini.readFacts(bodyOf(body))).toEqual({
      model: undefined,
      stream: false,
      maxOutputTokens: 5,
      choices: 1,
      reasoning: { kind: "unspecified" },
      wantsUsage: true,
    });
  });

  test.each([
    ["openai", { model: "m", reasoning_effort: "none" }, { kind: "off" }],
    ["openai", { model: "m", reasoning_effort: "high" }, { kind: "open" }],
    ["anthropic", { model: "m" }, { kind: "off" }],
    ["anthropic", { model: "m", thinking: { type: "disabled" } }, { kind: "off" }],
    ["anthropic", { model: "m", thinking: { type: "adaptive" } }, { kind: "open" }],
    [
      "anthropic",
      { model: "m", thinking: { type: "enabled", budget_tokens: 2_000 } },
      { kind: "budget", tokens: 2_000 },
    ],
    ["gemini", {}, { kind: "unspecified" }],
    ["gemini", { generationConfig: { thinkingConfig: { thinkingBudget: 0 } } }, { kind: "off" }],
    ["gemini", { generationConfig: { thinkingConfig: { thinkingBudget: -1 } } }, { kind: "open" }],
    [
      "gemini",
      { generation_config: { thinking_config: { thinking_budget: 7 } } },
      { kind: "budget", tokens: 7 },
    ],
    [
      "gemini",
      { generationConfig: { thinkingConfig: { thinkingBudget: 7, thinking_budget: 9 } } },
      { kind: "budget", tokens: 9 },
    ],
  ] as const)("%s reasoning %j", (dialect, body, bound) => {
    expect(dialects[dialect].readFacts(bodyOf(body)).reasoning).toEqual(bound);
  });

  test.each([
    ["openai", null],
    ["openai", []],
    ["openai", {}],
    ["openai", { model: "" }],
    ["openai", { model: "m", stream: "true" }],
    ["openai", { model: "m", max_tokens: "5" }],
    ["anthropic", { model: 1 }],
    ["gemini", "text"],
    ["gemini", { generationConfig: { maxOutputTokens: -1 } }],
  ] as const)("%s refuses %j", (dialect, body) => {
    expect(() => dialects[dialect].readFacts(bodyOf(body))).toThrow(BadRequestError);
  });
});

describe("usage of an answer", () => {
  test("anthropic: input includes what was cached; a short breakdown leaves the rest to 5 minutes", () => {
    const usage = {
      input_tokens: 1,
      cache_read_input_tokens: 10,
      cache_creation_input_tokens: 100,
      cache_creation: { ephemeral_5m_input_tokens: 20, ephemeral_1h_input_tokens: 30 },
      output_tokens: 2,
    };
    expect(dialects.anthropic.readUsage({ usage })).toMatchObject({
      inputTokens: 111,
      cachedInputTokens: 10,
      cacheWrite5mTokens: 70,
      cacheWrite1hTokens: 30,
      outputTokens: 2,
    });
  });

  test("anthropic: no breakdown, or only a breakdown", () => {
    expect(
      dialects.anthropic.readUsage({
        usage: {
          input_tokens: 1,
          cache_creation_input_tokens: 100,
          cache_creation: null,
          output_tokens: 2,
        },
      }),
    ).toMatchObject({ inputTokens: 101, cacheWrite5mTokens: 100 });
    expect(
      dialects.anthropic.readUsage({
        usage: {
          input_tokens: 1,
          cache_creation: { ephemeral_1h_input_tokens: 5 },
          output_tokens: 2,
        },
      }),
    ).toMatchObject({ inputTokens: 6, cacheWrite5mTokens: 0, cacheWrite1hTokens: 5 });
  });

  test("openai: chat and embeddings", () => {
    expect(
      dialects.openai.readUsage({
        usage: {
          prompt_tokens: 9,
          completion_tokens: 2,
          prompt_tokens_details: { cached_tokens: 4 },
        },
      }),
    ).toMatchObject({ inputTokens: 9, cachedInputTokens: 4, outputTokens: 2 });
    expect(
      dialects.openai.readUsage({ usage: { prompt_tokens: 9, total_tokens: 9 } }),
    ).toMatchObject({ inputTokens: 9, outputTokens: 0 });
  });

  test("gemini: thoughts are output", () => {
    expect(
      dialects.gemini.readUsage({
        usageMetadata: {
          promptTokenCount: 9,
          toolUsePromptTokenCount: 1,
          cachedContentTokenCount: 4,
          candidatesTokenCount: 2,
          thoughtsTokenCount: 3,
        },
      }),
    ).toMatchObject({
      inputTokens: 10,
      cachedInputTokens: 4,
      outputTokens: 5,
    });
  });

  test.each(["openai", "anthropic", "gemini"] as const)("%s: none is none, not zero", (dialect) => {
    expect(dialects[dialect].readUsage({})).toBeUndefined();
    expect(dialects[dialect].readUsage("text")).toBeUndefined();
  });
});

describe("keys in an error", () => {
  test.each([
    ["Incorrect API key provided: sk-proj-ab**cd.", "Incorrect API key provided: [redacted]"],
    ["x-api-key sk-ant-api03-abc_DEF-123", "x-api-key [redacted]"],
    ["AIzaSyA1234567890abcdef is invalid", "[redacted] is invalid"],
    ["Authorization: Bearer abc.def-ghi rejected", "Authorization: [redacted] rejected"],
    ["GET /v1?key=abc&x=1", "GET /v1?key=[redacted]&x=1"],
    ["the task-force-of-sk is fine", "the task-force-of-sk is fine"],
  ])("%s", (text, redacted) => {
    expect(redactSecrets(text)).toBe(redacted);
  });
});
