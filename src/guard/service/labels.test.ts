import { describe, expect, test } from "vitest";
import type { Label } from "../protocol.ts";
import { labelsOfModel, scoresOf } from "./labels.ts";

const none = new Map<string, Label>();

describe("labels of a model's classes", () => {
  test.each<[string, object, ReadonlyMap<string, Label>, readonly Label[]]>([
    [
      "Prompt Guard 1",
      { 0: "BENIGN", 1: "INJECTION", 2: "JAILBREAK" },
      none,
      ["benign", "injection", "jailbreak"],
    ],
    ["Prompt Guard 2, as published", { 0: "LABEL_0", 1: "LABEL_1" }, none, ["benign", "injection"]],
    ["Prompt Guard 2 with names", { 0: "benign", 1: "malicious" }, none, ["benign", "injection"]],
    ["another model", { 0: "SAFE", 1: "INJECTION" }, none, ["benign", "injection"]],
    ["the other order", { 1: "SAFE", 0: "INJECTION" }, none, ["injection", "benign"]],
    ["a single class", { 0: "INJECTION" }, none, ["injection"]],
    [
      "names of the user",
      { 0: "ok", 1: "bad", 2: "worse" },
      new Map<string, Label>([
        ["OK", "benign"],
        ["BAD", "injection"],
        ["WORSE", "jailbreak"],
      ]),
      ["benign", "injection", "jailbreak"],
    ],
    [
      "a name of the user before a known one",
      { 0: "BENIGN", 1: "INJECTION" },
      new Map<string, Label>([["INJECTION", "jailbreak"]]),
      ["benign", "jailbreak"],
    ],
  ])("%s", (_name, id2label, given, labels) => {
    expect(labelsOfModel(id2label, given)).toEqual(labels);
  });

  test.each<[string, unknown, ReadonlyMap<string, Label>, string]>([
    ["no id2label", undefined, none, "id2label is not an object"],
    ["a list", ["BENIGN"], none, "id2label is not an object"],
    ["no class", {}, none, "are not 0, 1, 2"],
    ["a gap", { 0: "SAFE", 2: "INJECTION" }, none, "are not 0, 1, 2"],
    ["a class that is not a number", { one: "SAFE" }, none, "id2label is not an object"],
    [
      "an unknown class",
      { 0: "SAFE", 1: "toxic" },
      none,
      "TOXIC is not known. Say which label each has: --label TOXIC=benign|injection|jailbreak.",
    ],
    [
      "three classes without names",
      { 0: "LABEL_0", 1: "LABEL_1", 2: "LABEL_2" },
      none,
      "--label LABEL_0=benign|injection|jailbreak --label LABEL_1=",
    ],
    [
      "classes without names in the other order",
      { 0: "LABEL_1", 1: "LABEL_0" },
      none,
      "LABEL_1, LABEL_0 is not known",
    ],
    ["no attack", { 0: "SAFE", 1: "BENIGN" }, none, "--label BENIGN=injection"],
    [
      "a class of the user that is not there",
      { 0: "SAFE", 1: "INJECTION" },
      new Map<string, Label>([["BAD", "injection"]]),
      "--label BAD: the model has no such class. Its classes are SAFE, INJECTION.",
    ],
  ])("%s is an error that names the option", (_name, id2label, given, words) => {
    expect(() => labelsOfModel(id2label, given)).toThrow(words);
  });
});

describe("scores", () => {
  const three: readonly Label[] = ["benign", "injection", "jailbreak"];
  const rounded = (logits: readonly number[], labels: readonly Label[]): object => {
    const scores = scoresOf(Float32Array.from(logits), labels);
    return Object.fromEntries(
      Object.entries(scores).map(([label, score]) => [label, Number(score.toFixed(4))]),
    );
  };

  test.each<[string, readonly number[], readonly Label[], object]>([
    ["equal logits", [1, 1, 1], three, { benign: 0.3333, injection: 0.3333, jailbreak: 0.3333 }],
    ["softmax", [0, 1, 2], three, { benign: 0.09, injection: 0.2447, jailbreak: 0.6652 }],
    ["logits that overflow exp", [0, 800, 0], three, { benign: 0, injection: 1, jailbreak: 0 }],
    [
      "very negative logits",
      [-800, -800, -900],
      three,
      { benign: 0.5, injection: 0.5, jailbreak: 0 },
    ],
    [
      "another order",
      [2, 0],
      ["injection", "benign"],
      { benign: 0.1192, injection: 0.8808, jailbreak: 0 },
    ],
    [
      "classes with one label",
      [0, 0, 0],
      ["benign", "injection", "injection"],
      { benign: 0.3333, injection: 0.6667, jailbreak: 0 },
    ],
    ["one logit: sigmoid", [2], ["jailbreak"], { benign: 0.1192, injection: 0, jailbreak: 0.8808 }],
    ["one logit, very negative", [-900], ["injection"], { benign: 1, injection: 0, jailbreak: 0 }],
  ])("%s", (_name, logits, labels, scores) => {
    expect(rounded(logits, labels)).toEqual(scores);
  });

  test.each([[[Number.NaN, 0, 0]], [[Number.POSITIVE_INFINITY, 0, 0]]])(
    "logits %j are an error",
    (logits) => {
      expect(() => scoresOf(Float32Array.from(logits), three)).toThrow("not finite");
    },
  );
});
