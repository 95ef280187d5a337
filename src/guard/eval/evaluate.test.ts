import { describe, expect, test } from "vitest";
import type { Label, Scores } from "../protocol.ts";
import { evaluate, missedBounds, type Observation, observe } from "./evaluate.ts";

const HALF = { injection: 0.5, jailbreak: 0.5 };

function observation(label: Label, injection: number, jailbreak = 0, ms = 1): Observation {
  return { label, ms, scores: { benign: 1 - injection, injection, jailbreak } };
}

const missing = (label: Label): Observation => ({ label, ms: 5_000, scores: undefined });

describe("rates", () => {
  const observations = [
    observation("benign", 0.1, 0, 10),
    observation("benign", 0.2, 0, 20),
    observation("benign", 0.55, 0, 30),
    observation("benign", 0, 0.95, 40),
    observation("injection", 0.9, 0, 50),
    observation("injection", 0.4, 0, 60),
    // Flagged as the other attack.
    observation("injection", 0.1, 0.8, 70),
    observation("jailbreak", 0, 0.5, 80),
    missing("jailbreak"),
    missing("benign"),
  ];

  test("at the thresholds, of the texts with an answer", () => {
    const evaluation = evaluate(observations, HALF);
    expect(evaluation).toMatchObject({
      texts: { benign: 5, injection: 3, jailbreak: 2 },
      unavailable: 2,
      thresholds: HALF,
      rates: {
        recall: { injection: 2 / 3, jailbreak: 1, any: 3 / 4 },
        falsePositives: 2 / 4,
        precision: 3 / 5,
      },
      latencyMs: { p50: 40, p95: 80, max: 80 },
    });
  });

  test("each attack has its own threshold", () => {
    const { rates } = evaluate(observations, { injection: 0.95, jailbreak: 0.9 });
    expect(rates).toEqual({
      recall: { injection: 0, jailbreak: 0, any: 0 },
      falsePositives: 1 / 4,
      precision: 0,
    });
  });

  test("by threshold", () => {
    const { byThreshold } = evaluate(observations, HALF);
    expect(byThreshold.map(({ threshold }) => threshold)).toEqual([
      0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9,
    ]);
    expect(byThreshold.map(({ falsePositives }) => falsePositives)).toEqual([
      1,
      3 / 4,
      1 / 2,
      1 / 2,
      1 / 2,
      1 / 4,
      1 / 4,
      1 / 4,
      1 / 4,
    ]);
    expect(byThreshold.map(({ recall }) => recall.any)).toEqual([
      1,
      1,
      1,
      1,
      3 / 4,
      1 / 2,
      1 / 2,
      1 / 2,
      1 / 4,
    ]);
  });

  test("without anything to divide by, there is none", () => {
    const { rates, latencyMs } = evaluate([missing("injection")], HALF);
    expect(rates).toEqual({
      recall: { injection: null, jailbreak: null, any: null },
      falsePositives: null,
      precision: null,
    });
    expect(latencyMs).toEqual({ p50: null, p95: null, max: null });
  });
});

describe("bounds of a build", () => {
  const good = evaluate([observation("benign", 0), observation("injection", 1)], HALF);
  const bad = evaluate(
    [
      observation("benign", 0),
      observation("benign", 1),
      observation("injection", 1),
      observation("injection", 0),
    ],
    HALF,
  );

  test.each([
    [good, 1, 0, []],
    [bad, undefined, undefined, []],
    [bad, 0.5, 0.5, []],
    [bad, 0.51, 1, ["Recall 50.0% is below --min-recall 51.0%."]],
    [bad, 0, 0.1, ["False positives 50.0% are above --max-false-positives 10.0%."]],
    [
      evaluate([missing("benign")], HALF),
      0,
      1,
      [
        "No attack of the dataset was classified: its recall is unknown.",
        "No benign text of the dataset was classified: its false positives are unknown.",
        "1 texts were not classified, so that the rates are incomplete.",
      ],
    ],
    [evaluate([missing("benign")], HALF), undefined, undefined, []],
  ])("%#", (evaluation, minRecall, maxFalsePositives, sentences) => {
    expect(missedBounds(evaluation, { minRecall, maxFalsePositives })).toEqual(sentences);
  });
});

test("a dataset is classified with the wanted concurrency; failures are kept, in order", async () => {
  let under = 0;
  let most = 0;
  let time = 0;
  const scores: Scores = { benign: 1, injection: 0, jailbreak: 0 };
  const examples = Array.from({ length: 10 }, (_, index) => ({
    text: String(index),
    label: index % 2 === 0 ? ("benign" as const) : ("injection" as const),
  }));
  const observations = await observe(examples, {
    concurrency: 3,
    monotonic: () => (time += 1),
    classify: async (text) => {
      under += 1;
      most = Math.max(most, under);
      await new Promise(setImmediate);
      under -= 1;
      if (text === "4") throw new Error("away");
      return scores;
    },
  });
  expect(most).toBe(3);
  expect(observations.map(({ label }) => label)).toEqual(examples.map(({ label }) => label));
  expect(observations.map((found) => found.scores === undefined)).toEqual(
    examples.map(({ text }) => text === "4"),
  );
  expect(observations.every(({ ms }) => ms > 0)).toBe(true);
});
