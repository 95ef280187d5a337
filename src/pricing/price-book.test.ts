import { describe, expect, test } from "vitest";
import { costOf, formatUsd } from "./cost.ts";
import type { TokenCounts } from "./price-book.ts";
import { createPriceBook } from "./price-book.ts";
import { PRICE_SOURCES, SHIPPED_PRICES } from "./prices.ts";

const shipped = createPriceBook(SHIPPED_PRICES);
const usage = (counts: Partial<TokenCounts>): TokenCounts => ({
  inputTokens: 0,
  cachedInputTokens: 0,
  cacheWrite5mTokens: 0,
  cacheWrite1hTokens: 0,
  outputTokens: 0,
  ...counts,
});
const price = (model: string, book = shipped) => {
  const found = book.priceOf(model);
  if (found === undefined) throw new Error(`no price of ${model}`);
  return found;
};
const cost = (model: string, counts: Partial<TokenCounts>) => {
  const { input, cachedInput, output, total } = costOf(price(model), usage(counts));
  expect(total).toBe(input + cachedInput + output);
  return [input, cachedInput, output].map(formatUsd);
};

describe("priceOf", () => {
  const book = createPriceBook({
    "m-*": { input: "1", output: "1" },
    "m-1*": { input: "2", output: "2" },
    "m-1": { input: "3", output: "3" },
    "*": { input: "9", output: "9" },
  });
  test.each([
    ["m-1", 3n],
    ["m-12", 2n],
    ["m-2", 1n],
    ["x", 9n],
  ])("%s: exact first, then the longest wildcard", (model, dollars) => {
    expect(price(model, book).input).toBe(dollars * 1_000_000n);
    expect(price(model, book)).toBe(price(model, book));
  });

  test("an override replaces the entry of its key, and adds entries", () => {
    const merged = createPriceBook(
      { a: { input: "1", output: "1" }, b: { input: "1", output: "1" } },
      { a: { input: "5", output: "5" }, "c*": { input: "6", output: "6" } },
    );
    expect(["a", "b", "c1"].map((model) => price(model, merged).input)).toEqual([
      5_000_000n,
      1_000_000n,
      6_000_000n,
    ]);
  });

  test("an unknown model has no price, however often it is asked for", () => {
    for (let i = 0; i < 10_000; i += 1) expect(shipped.priceOf(`unknown-${i}`)).toBeUndefined();
    expect(shipped.priceOf("__proto__")).toBeUndefined();
    expect(shipped.priceOf("gpt-5-turbo-unheard-of")).toBeUndefined();
  });

  test("a price that cannot be read names its model", () => {
    expect(() => createPriceBook({ bad: { input: "1e3", output: "1" } })).toThrow("price of bad");
  });
});

describe("defaults", () => {
  const book = createPriceBook({
    "claude-x": { input: "4", output: "8" },
    other: { input: "4", output: "8" },
    wrote: { input: "4", cacheWrite5m: "5", output: "8" },
  });
  test("cached input costs what input costs", () =>
    expect(price("other", book).cachedInput).toBe(4_000_000n));
  test("cache writes cost 1.25 and 2 times the input for claude models, the input price for others", () => {
    expect([price("claude-x", book).cacheWrite5m, price("claude-x", book).cacheWrite1h]).toEqual([
      5_000_000n,
      8_000_000n,
    ]);
    expect([price("other", book).cacheWrite5m, price("other", book).cacheWrite1h]).toEqual([
      4_000_000n,
      4_000_000n,
    ]);
    expect(price("wrote", book).cacheWrite1h).toBe(5_000_000n);
  });
});

describe("costOf", () => {
  test("plain input and output", () =>
    expect(cost("gpt-5", { inputTokens: 1_000_000, outputTokens: 3 })).toEqual([
      "1.25",
      "0",
      "0.00003",
    ]));

  test("inputTokens includes cached reads and cache writes; writes are of the kind input", () => {
    // 1000 in total: 100 uncached at $5, 600 cached at $0.50, 200 written for 5 minutes at $6.25,
    // 100 for 1 hour at $10.
    expect(
      cost("claude-opus-5", {
        inputTokens: 1000,
        cachedInputTokens: 600,
        cacheWrite5mTokens: 200,
        cacheWrite1hTokens: 100,
        outputTokens: 10,
      }),
    ).toEqual(["0.00275", "0.0003", "0.00025"]);
  });

  test("a breakdown larger than the total is charged as it is, and never makes the rest negative", () =>
    expect(cost("claude-opus-5", { inputTokens: 10, cachedInputTokens: 1000 })).toEqual([
      "0",
      "0.0005",
      "0",
    ]));

  test("above the limit a long prompt is dearer for all its tokens, not at it", () => {
    expect(cost("gpt-6.2-sol", { inputTokens: 272_000, outputTokens: 1000 })).toEqual([
      "0.544",
      "0",
      "0.01",
    ]);
    expect(
      cost("gpt-6.2-sol", { inputTokens: 272_001, cachedInputTokens: 1, outputTokens: 1000 }),
    ).toEqual(["1.088", "0.0000002", "0.015"]);
  });

  test("counts that are no counts are not charged", () =>
    expect(
      cost("gpt-5", {
        inputTokens: Number.NaN,
        cachedInputTokens: -5,
        outputTokens: Number.POSITIVE_INFINITY,
      }),
    ).toEqual(["0", "0", "0"]));

  test("large counts are exact where a float would not be", () =>
    expect(cost("gpt-5-nano", { inputTokens: 9_007_199_254_740_991 })[0]).toBe(
      "450359962.73704955",
    ));
});

describe("the shipped table", () => {
  test("says where it is from and when", () => {
    for (const { url, date } of PRICE_SOURCES) {
      expect(url).toMatch(/^https:\/\//);
      expect(date).toMatch(/^20\d\d-\d\d-\d\d$/);
    }
  });

  test.each([
    ["gpt-5", "gpt-5-2025-08-07"],
    ["gpt-5-mini", "gpt-5-mini-2025-08-07"],
    ["claude-haiku-4-5", "claude-haiku-4-5-20251001"],
    ["claude-opus-4", "claude-opus-4-20250514"],
    ["claude-opus-4-1", "claude-opus-4-1-20250805"],
  ])("%s covers its snapshot %s", (model, snapshot) =>
    expect(price(snapshot)).toEqual(price(model)),
  );

  test("no price is absurd: cached <= input <= output (embeddings have no output), writes >= input", () => {
    for (const { models } of PRICE_SOURCES) {
      for (const model of Object.keys(models)) {
        const { input, cachedInput, cacheWrite5m, cacheWrite1h, output } = price(model);
        expect(
          cachedInput <= input && cacheWrite5m >= input && cacheWrite1h >= cacheWrite5m,
          model,
        ).toBe(true);
        expect(output === 0n || output > input, model).toBe(true);
      }
    }
  });
});
