import { inspect } from "node:util";
import { expect, test } from "vitest";
import { scores } from "./testing.ts";
import { VerdictCache } from "./verdict-cache.ts";

test("a verdict is remembered for its text and its classifier", () => {
  const cache = new VerdictCache();
  const key = cache.keyOf("a", "text");
  cache.set(key, scores(0.7));
  expect(cache.get(cache.keyOf("a", "text"))).toEqual(scores(0.7));
  expect(cache.get(cache.keyOf("b", "text"))).toBeUndefined();
  expect(cache.get(cache.keyOf("a", "Text"))).toBeUndefined();
  expect(cache.get(cache.keyOf("a", "text "))).toBeUndefined();
});

test("an id and a text cannot be confused with another id and text", () => {
  const cache = new VerdictCache();
  expect(cache.keyOf("a", "b")).not.toBe(cache.keyOf("ab", ""));
  expect(cache.keyOf("ab", "c")).not.toBe(cache.keyOf("a", "bc"));
});

test("keys are of one process, and nothing of a text is kept", () => {
  const [one, other] = [new VerdictCache(), new VerdictCache()];
  const text = "a secret of the caller";
  expect(one.keyOf("a", text)).not.toBe(other.keyOf("a", text));
  one.set(one.keyOf("a", text), scores(0));
  expect(one.keyOf("a", text)).toHaveLength(16);
  expect(inspect(one, { depth: 5, showHidden: true })).not.toContain("secret");
});

test("the least recently used verdict is dropped", () => {
  const cache = new VerdictCache(3);
  const [a = "", b = "", c = "", d = "", e = ""] = Array.from("abcde").map((text) =>
    cache.keyOf("x", text),
  );
  for (const key of [a, b, c]) cache.set(key, scores(0));
  expect(cache.get(a)).toBeDefined();
  cache.set(d, scores(0));
  expect(cache.get(b)).toBeUndefined();
  // A new verdict about a known text takes no other's place.
  cache.set(c, scores(1));
  cache.set(e, scores(0));
  expect([a, b, c, d, e].map((key) => cache.get(key) !== undefined)).toEqual([
    false,
    false,
    true,
    true,
    true,
  ]);
  expect(cache.get(c)).toEqual(scores(1));
  expect(cache.size).toBe(3);
});
