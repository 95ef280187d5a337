/**
 * The protocol of classifiers: `POST /classify` with `{text}`, answered with
 * `{label, score, labels: {benign, injection, jailbreak}}`. An answer is parsed strictly, because a
 * classifier that answers anything else does not classify.
 */
import * as z from "zod";

export const LABELS = ["benign", "injection", "jailbreak"] as const;

export type Label = (typeof LABELS)[number];

/** Scores of a text by label, each from 0 to 1. */
export type Scores = Readonly<Record<Label, number>>;

export interface ClassifyRequest {
  readonly text: string;
}

export interface ClassifyAnswer {
  /** The label with the highest score. */
  readonly label: Label;
  readonly score: number;
  readonly labels: Scores;
}

/**
 * Headers of the guard service's answers: its type, and its model if it has one. They let a caller
 * notice that it asks another classifier than the one that it expects.
 */
export const ClassifierHeader = {
  type: "x-svc-classifier",
  model: "x-svc-classifier-model",
} as const;

/**
 * Returns whether an answer comes from the expected classifier. One that does not say what it is,
 * is believed. Of a model's name, what is before its last slash may differ: `meta-llama/X` is `X`.
 */
export function isExpected(
  headers: Readonly<Record<string, string | readonly string[] | undefined>>,
  expected: { readonly type: string; readonly model: string | undefined },
): boolean {
  const type = headers[ClassifierHeader.type];
  const model = headers[ClassifierHeader.model];
  if (type !== undefined && type !== expected.type) return false;
  if (model === undefined || expected.model === undefined) return true;
  return baseName(String(model)) === baseName(expected.model);
}

const baseName = (model: string): string => model.slice(model.lastIndexOf("/") + 1);

/** Longest text of one request in UTF-16 code units; callers split longer ones. */
export const MAX_CLASSIFY_CHARS = 262_144;

// JSON has no NaN, and `1e999` parses as Infinity, which `max` refuses.
const score = z.number().min(0).max(1);

const answerSchema = z.object({
  label: z.string(),
  score,
  labels: z.object({ benign: score, injection: score, jailbreak: score }),
});

/** Returns the scores of an answer's body; undefined if it is none. */
export function parseAnswer(body: string): Scores | undefined {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    return undefined;
  }
  const parsed = answerSchema.safeParse(value);
  return parsed.success ? parsed.data.labels : undefined;
}

/** Returns the answer for scores: the label with the highest one, `benign` last of equal ones. */
export function answerOf(labels: Scores): ClassifyAnswer {
  const label = (["injection", "jailbreak", "benign"] as const).reduce((best, next) =>
    labels[next] > labels[best] ? next : best,
  );
  return { label, score: labels[label], labels };
}
