import * as fc from "fast-check";
import { expect, test } from "vitest";
import { base64Runs } from "./base64-runs.ts";

/** The same by an expression, which is slower by a factor of ten. */
const REFERENCE = /[A-Za-z0-9+/_-]{24,}(?:\r?\n[ \t]*[A-Za-z0-9+/_-]+)*/g;

const characters = fc.oneof(
  { weight: 30, arbitrary: fc.constantFrom(...Array.from("Az09+/_-")) },
  { weight: 1, arbitrary: fc.constantFrom("\n", "\r\n", "\r", "\n  \t", " ", "=", ".", "é", "😀") },
);

test("runs are those of the expression", () => {
  fc.assert(
    fc.property(fc.array(characters, { maxLength: 300 }), (parts) => {
      const text = parts.join("");
      expect([...base64Runs(text)]).toEqual([...text.matchAll(REFERENCE)].map(([run]) => run));
    }),
    { numRuns: 2_000 },
  );
});

test.each([
  ["in a sentence", (run: string) => `see ${run}, please`, 1],
  ["at the start", (run: string) => `${run}.`, 1],
  ["at the end, padded", (run: string) => `: ${run}==`, 1],
  ["twice", (run: string) => `${run} ${run}`, 2],
  ["too short", (run: string) => run.slice(0, 23), 0],
])("%s", (_, write, count) => {
  const run = "QUJDREVGR0hJSktMTU5PUFFS";
  expect([...base64Runs(write(run))]).toEqual(Array.from({ length: count }, () => run));
});
