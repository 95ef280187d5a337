import { describe, expect, test } from "vitest";
import { answerOf, isExpected, parseAnswer } from "./protocol.ts";

const SCORES = { benign: 0.25, injection: 0.5, jailbreak: 0.25 };

test("an answer has the label with the highest score", () => {
  expect(answerOf(SCORES)).toEqual({ label: "injection", score: 0.5, labels: SCORES });
  const equal = { benign: 0.5, injection: 0.5, jailbreak: 0.5 };
  expect(answerOf(equal).label).toBe("injection");
});

test("an answer is its scores", () =>
  expect(parseAnswer(JSON.stringify(answerOf(SCORES)))).toEqual(SCORES));

describe("no answer", () => {
  const whole = (labels: string): string => `{"label":"benign","score":0.5,"labels":{${labels}}}`;
  test.each([
    ["no JSON", "<html>"],
    ["empty", ""],
    ["null", "null"],
    ["a list", "[]"],
    ["no labels", '{"label":"benign","score":0.5}'],
    ["a label is missing", whole('"benign":1,"injection":0')],
    ["NaN", whole('"benign":NaN,"injection":0,"jailbreak":0')],
    ["infinity", whole('"benign":1e999,"injection":0,"jailbreak":0')],
    ["above 1", whole('"benign":1.01,"injection":0,"jailbreak":0')],
    ["below 0", whole('"benign":1,"injection":-0.01,"jailbreak":0')],
    ["a text", whole('"benign":"1","injection":0,"jailbreak":0')],
    ["null as a score", whole('"benign":null,"injection":0,"jailbreak":0')],
    ["no score", '{"label":"x","labels":{"benign":1,"injection":0,"jailbreak":0}}'],
  ])("%s", (_, body) => expect(parseAnswer(body)).toBeUndefined());
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
