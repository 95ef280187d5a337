/** The reserved size of a call, at its limits. */
import { describe, expect, test } from "vitest";
import { askedOutputTokens, ASSUMED_OUTPUT_TOKENS, sizeOf, type Size } from "./call-size.ts";
import type { RequestFacts } from "./facts.ts";
import type { LlmRoute } from "./routes.ts";

const route = (operation: LlmRoute["operation"]): LlmRoute => ({ operation }) as LlmRoute;
const facts = (maxOutputTokens: number | undefined, choices = 1): RequestFacts =>
  ({ maxOutputTokens, choices }) as RequestFacts;

/** A prompt of 100 tokens. */
const body = { size: { text: 300, files: 0 } } as unknown as Parameters<typeof sizeOf>[0]["body"];

function sized(limit: number | undefined, asked: number | undefined, choices = 1): Size {
  return sizeOf({
    route: route("chat"),
    facts: facts(asked, choices),
    body,
    maxTokensPerRequest: limit,
  });
}

describe("without a limit", () => {
  test("the answer is what the request asks for", () => {
    expect(sized(undefined, 50)).toEqual({
      kind: "sized",
      promptTokens: 100,
      outputTokens: 50,
      outputCap: undefined,
    });
    expect(sized(undefined, 50, 3)).toMatchObject({ outputTokens: 150 });
  });

  test("or what is assumed, for each of the answers", () => {
    expect(sized(undefined, undefined, 2)).toMatchObject({
      outputTokens: 2 * ASSUMED_OUTPUT_TOKENS,
      outputCap: undefined,
    });
  });
});

describe("with a limit", () => {
  test.each<[limit: number, asked: number | undefined, choices: number, expected: object]>([
    [150, 50, 1, { outputTokens: 50, outputCap: undefined }],
    [250, 50, 3, { outputTokens: 150, outputCap: undefined }],
    [101, undefined, 1, { outputTokens: 1, outputCap: 1 }],
    [110, undefined, 3, { outputTokens: 10, outputCap: 3 }],
    [103, undefined, 3, { outputTokens: 3, outputCap: 1 }],
    [100, 0, 1, { outputTokens: 0, outputCap: undefined }],
  ])("of %i, %s tokens of %i answers fit", (limit, asked, choices, expected) => {
    expect(sized(limit, asked, choices)).toMatchObject({ kind: "sized", ...expected });
  });

  test.each<[limit: number, asked: number | undefined, choices: number]>([
    [149, 50, 1],
    [249, 50, 3],
    [100, undefined, 1],
    [102, undefined, 3],
    [99, 0, 1],
  ])("of %i, %s tokens of %i answers do not fit", (limit, asked, choices) => {
    expect(sized(limit, asked, choices)).toMatchObject({
      kind: "too_large",
      error: { code: "tokens_per_request_exceeded" },
    });
  });
});

test.each<
  [operation: LlmRoute["operation"], asked: number | undefined, expected: number | undefined]
>([
  ["chat", 50, 50],
  ["responses", 50, 50],
  ["chat", undefined, undefined],
  ["responses", undefined, undefined],
  ["chat", 0.5, 1],
  ["chat", 1e300, 1_000_000_000_000],
  ["embeddings", 50, 0],
  ["embeddings", undefined, 0],
  ["count_tokens", 50, 0],
])("%s with a maximum of %s asks for %s", (operation, asked, expected) => {
  expect(askedOutputTokens(route(operation), facts(asked))).toBe(expected);
});

test("counting tokens costs no prompt", () => {
  const counted = { route: route("count_tokens"), facts: facts(undefined), body };
  expect(sizeOf({ ...counted, maxTokensPerRequest: undefined })).toMatchObject({
    promptTokens: 0,
    outputTokens: 0,
  });
  expect(sizeOf({ ...counted, maxTokensPerRequest: 1 })).toMatchObject({ kind: "sized" });
  expect(sizeOf({ ...counted, route: route("embeddings"), maxTokensPerRequest: 99 })).toMatchObject(
    { kind: "too_large" },
  );
});
