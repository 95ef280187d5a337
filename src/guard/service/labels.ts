/** Scores from the logits of a sequence classification model. */
import * as z from "zod";
import { type Label, LABELS, type Scores } from "../protocol.ts";
import { ClassifierError, ClassifierSetupError } from "./classifier.ts";

/** Labels by the name that a model gives its class, in upper case. */
export type LabelMap = ReadonlyMap<string, Label>;

/**
 * Names of Prompt Guard 1 and 2 and of similar models. Prompt Guard 2 has one class for all
 * attacks: text that tries to override the instructions of developers or users.
 */
const KNOWN: LabelMap = new Map([
  ["BENIGN", "benign"],
  ["SAFE", "benign"],
  ["LEGIT", "benign"],
  ["INJECTION", "injection"],
  ["MALICIOUS", "injection"],
  ["JAILBREAK", "jailbreak"],
]);

/** Prompt Guard 2 as it is published: its classes have no names. */
const UNNAMED: LabelMap = new Map([
  ["LABEL_0", "benign"],
  ["LABEL_1", "injection"],
]);

const id2labelSchema = z.record(z.string().regex(/^\d{1,4}$/), z.string());

/**
 * Returns the label of each class of a model, in the order of its logits.
 * @param id2label member of the model's config.json
 * @param given labels that the user has named, which go first
 */
export function labelsOfModel(id2label: unknown, given: LabelMap): readonly Label[] {
  const parsed = id2labelSchema.safeParse(id2label);
  if (!parsed.success)
    throw new ClassifierSetupError(
      "config.json: id2label is not an object of class names by number. The model is not one " +
        "for sequence classification, or its config.json is incomplete.",
    );
  const count = Object.keys(parsed.data).length;
  const names = Array.from({ length: count }, (_, index) => parsed.data[String(index)]);
  if (count === 0 || names.includes(undefined))
    throw new ClassifierSetupError(
      "config.json: the numbers in id2label are not 0, 1, 2 and so on.",
    );
  const classes = (names as string[]).map((name) => name.trim().toUpperCase());
  for (const name of given.keys()) {
    if (!classes.includes(name))
      throw new ClassifierSetupError(
        `--label ${name}: the model has no such class. Its classes are ${classes.join(", ")}.`,
      );
  }
  const unnamed = classes.join() === [...UNNAMED.keys()].join() ? UNNAMED : new Map();
  const labels = classes.map((name) => given.get(name) ?? KNOWN.get(name) ?? unnamed.get(name));
  const unknown = classes.filter((_name, index) => labels[index] === undefined);
  if (unknown.length > 0)
    throw new ClassifierSetupError(
      `config.json: the meaning of the class ${unknown.join(", ")} is not known. Say which label ` +
        `each has: ${unknown.map((name) => `--label ${name}=${LABELS.join("|")}`).join(" ")}.`,
    );
  return needAttack(labels as Label[], classes);
}

function needAttack(labels: readonly Label[], classes: readonly string[]): readonly Label[] {
  if (labels.some((label) => label !== "benign")) return labels;
  throw new ClassifierSetupError(
    `config.json: no class of the model is an attack (its classes: ${classes.join(", ")}). Say ` +
      `which is: --label ${classes.at(-1)}=injection.`,
  );
}

/**
 * Returns the softmax of logits by label; classes with the same label are added. A single logit is
 * the sigmoid of its class, and the rest is benign.
 */
export function scoresOf(logits: Float32Array, labels: readonly Label[]): Scores {
  const scores = { benign: 0, injection: 0, jailbreak: 0 };
  const values = logits.length === 1 ? [...logits, 0] : [...logits];
  const highest = Math.max(...values);
  const powers = values.map((value) => Math.exp(value - highest));
  const sum = powers.reduce((total, power) => total + power, 0);
  for (const [index, power] of powers.entries()) {
    scores[labels[index] ?? "benign"] += power / sum;
  }
  if (!Number.isFinite(scores.benign + scores.injection + scores.jailbreak))
    throw new ClassifierError(500, "the model's logits are not finite numbers");
  for (const label of LABELS) scores[label] = Math.min(1, scores[label]);
  return scores;
}
