import { describe, expect, test } from "vitest";
import { answerOf, parseAnswer, isExpected } from "./protocol.ts";

const answer = (labels: unknown, more: object = {}): string =>
  JSON.stringify({ label: "benign", score: 0.9, labels, ...more });
const GOOD = { benign: 0.9, injection: 0.1, jailbreak: 0 };

test("scores of an answer, whatever else is in it", () => {
  expect(parseAnswer(answer(GOOD))).toEqual(GOOD);
  expect(parseAnswer(answer({ ...GOOD, other: 1 }, { more: [1] }))).toEqual(GOOD);
});

test.each([
  ["nothing", ""],
  ["no JSON", "<html>ok</html>"],
  ["null", "null"],
  ["a list", "[]"],
  ["no labels", JSON.stringify({ label: "benign", score: 1 })],
  ["a label is missing", answer({ benign: 1, injection: 0 })],
  ["a score as text", answer({ ...GOOD, injection: "0.1" })],
  ["a score of null", answer({ ...GOOD, injection: null })],
  ["a negative score", answer({ ...GOOD, injection: -1 })],
  ["a score above 1", answer({ ...GOOD, injection: 1.01 })],
  ["NaN", answer(GOOD).replace("0.1", "NaN")],
  ["Infinity, as a number", answer(GOOD).replace("0.1", "1e999")],
  ["no score", answer(GOOD, { score: undefined })],
  ["a score of another type", answer(GOOD, { score: "high" })],
  ["labels that are a list", answer([0.9, 0.1, 0])],
  ["a prototype in place of labels", '{"label":"x","score":1,"__proto__":{"labels":{}}}'],
  ["two answers", `${answer(GOOD)}${answer(GOOD)}`],
])("no answer: %s", (_, body) => expect(parseAnswer(body)).toBeUndefined());

test("the label of an answer is the one with the highest score; benign only if alone", () => {
  expect(answerOf(GOOD)).toEqual({ label: "benign", score: 0.9, labels: GOOD });
  expect(answerOf({ benign: 0.5, injection: 0.5, jailbreak: 0 }).label).toBe("injection");
  expect(answerOf({ benign: 0.1, injection: 0.2, jailbreak: 0.7 }).label).toBe("jailbreak");
  expect(answerOf({ benign: 0, injection: 0.5, jailbreak: 0.5 }).label).toBe("injection");
});

describe("the expected classifier", () => {
  const expected = { type: "promptGuard", model: "Prompt-Guard-86M" };
  test.each([
    ["says nothing", {}, true],
    ["its type", { "x-svc-classifier": "promptGuard" }, true],
    ["another type", { "x-svc-classifier": "stub" }, false],
    ["its model", { "x-svc-classifier-model": "Prompt-Guard-86M" }, true],
    ["its model, with an owner", { "x-svc-classifier-model": "meta-llama/Prompt-Guard-86M" }, true],
    ["another model", { "x-svc-classifier-model": "Prompt-Guard-22M" }, false],
    ["another case", { "x-svc-classifier-model": "prompt-guard-86m" }, false],
    ["two headers", { "x-svc-classifier": ["promptGuard", "stub"] }, false],
  ])("%s", (_, headers, result) => expect(isExpected(headers, expected)).toBe(result));

  test("any model, if the binding names none", () =>
    expect(
      isExpected({ "x-svc-classifier-model": "X" }, { type: "promptGuard", model: undefined }),
    ).toBe(true));
});
