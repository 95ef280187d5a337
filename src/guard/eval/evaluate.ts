/** Classifies a dataset, and computes how well a classifier does at which thresholds. */
import { type Label, LABELS, type Scores } from "../protocol.ts";
import type { Example } from "./dataset.ts";

export interface Thresholds {
  readonly injection: number;
  readonly jailbreak: number;
}

export interface Observation {
  readonly label: Label;
  /** Undefined if the classifier did not answer. */
  readonly scores: Scores | undefined;
  readonly ms: number;
}

/** Rates are from 0 to 1, and null where there is nothing to divide by. */
export interface Rates {
  /** Part of the texts of each attack that are flagged, as an injection or as a jailbreak. */
  readonly recall: Readonly<Record<Attack, number | null>>;
  /** Part of the benign texts that are flagged. */
  readonly falsePositives: number | null;
  /** Part of the flagged texts that are attacks. */
  readonly precision: number | null;
}

export type Attack = "injection" | "jailbreak" | "any";

export interface Evaluation {
  readonly texts: Readonly<Record<Label, number>>;
  /** Texts without an answer: they are in none of the rates. */
  readonly unavailable: number;
  readonly thresholds: Thresholds;
  readonly rates: Rates;
  /** Latency of the answers, in milliseconds; null if there are none. */
  readonly latencyMs: {
    readonly p50: number | null;
    readonly p95: number | null;
    readonly max: number | null;
  };
  /** Rates if this were the threshold of both attacks. */
  readonly byThreshold: readonly (Rates & { readonly threshold: number })[];
}

export interface EvaluateOptions {
  /** Rejects if the classifier does not answer. */
  readonly classify: (text: string) => Promise<Scores>;
  /** Texts that are classified at once. */
  readonly concurrency: number;
  /** Milliseconds of a monotonic clock. */
  readonly monotonic: () => number;
}

export async function observe(
  examples: readonly Example[],
  { classify, concurrency, monotonic }: EvaluateOptions,
): Promise<readonly Observation[]> {
  const observations: Observation[] = [];
  const left = examples.entries();
  const work = async (): Promise<void> => {
    for (const [index, { text, label }] of left) {
      const started = monotonic();
      const scores = await classify(text).catch(() => undefined);
      observations[index] = { label, scores, ms: monotonic() - started };
    }
  };
  await Promise.all(Array.from({ length: concurrency }, work));
  return observations;
}

const SWEEP = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];

export function evaluate(observations: readonly Observation[], thresholds: Thresholds): Evaluation {
  const answered = observations.filter(isAnswered);
  const count = (label: Label): number =>
    observations.filter((observation) => observation.label === label).length;
  const times = answered.map(({ ms }) => ms).sort((a, b) => a - b);
  const [benign, injection, jailbreak] = LABELS.map(count) as [number, number, number];
  return {
    texts: { benign, injection, jailbreak },
    unavailable: observations.length - answered.length,
    thresholds,
    rates: ratesAt(answered, thresholds),
    latencyMs: {
      p50: percentile(times, 0.5),
      p95: percentile(times, 0.95),
      max: percentile(times, 1),
    },
    byThreshold: SWEEP.map((threshold) => ({
      threshold,
      ...ratesAt(answered, { injection: threshold, jailbreak: threshold }),
    })),
  };
}

type Answered = Observation & { readonly scores: Scores };

function isAnswered(observation: Observation): observation is Answered {
  return observation.scores !== undefined;
}

function ratesAt(answered: readonly Answered[], thresholds: Thresholds): Rates {
  const flagged = (observation: Answered): boolean => isFlagged(observation.scores, thresholds);
  const attacks = answered.filter(({ label }) => label !== "benign");
  const recallOf = (label: Label): number | null =>
    rate(
      attacks.filter((attack) => attack.label === label),
      flagged,
    );
  return {
    recall: {
      injection: recallOf("injection"),
      jailbreak: recallOf("jailbreak"),
      any: rate(attacks, flagged),
    },
    falsePositives: rate(
      answered.filter(({ label }) => label === "benign"),
      flagged,
    ),
    precision: rate(answered.filter(flagged), ({ label }) => label !== "benign"),
  };
}

/** As the gateway decides: a score that reaches its threshold is a violation. */
function isFlagged(scores: Scores, { injection, jailbreak }: Thresholds): boolean {
  return scores.injection >= injection || scores.jailbreak >= jailbreak;
}

function rate<T>(all: readonly T[], is: (value: T) => boolean): number | null {
  return all.length === 0 ? null : all.filter(is).length / all.length;
}

/** The nearest-rank percentile of sorted values. */
function percentile(sorted: readonly number[], fraction: number): number | null {
  return sorted[Math.max(0, Math.ceil(sorted.length * fraction) - 1)] ?? null;
}

/** Bounds that a build may set, from 0 to 1; undefined is no bound. */
export interface Bounds {
  readonly minRecall: number | undefined;
  readonly maxFalsePositives: number | undefined;
}

/** Returns one sentence for each bound that is not met. */
export function missedBounds(
  { rates, unavailable }: Evaluation,
  { minRecall, maxFalsePositives }: Bounds,
): readonly string[] {
  if (minRecall === undefined && maxFalsePositives === undefined) return [];
  const missed: string[] = [];
  const attacks = rates.recall.any;
  if (minRecall !== undefined && (attacks === null || attacks < minRecall))
    missed.push(
      attacks === null
        ? "No attack of the dataset was classified: its recall is unknown."
        : `Recall ${percent(attacks)} is below --min-recall ${percent(minRecall)}.`,
    );
  const wrong = rates.falsePositives;
  if (maxFalsePositives !== undefined && (wrong === null || wrong > maxFalsePositives))
    missed.push(
      wrong === null
        ? "No benign text of the dataset was classified: its false positives are unknown."
        : `False positives ${percent(wrong)} are above --max-false-positives ` +
            `${percent(maxFalsePositives)}.`,
    );
  if (unavailable > 0)
    missed.push(`${unavailable} texts were not classified, so that the rates are incomplete.`);
  return missed;
}

export function percent(fraction: number | null): string {
  return fraction === null ? "-" : `${(fraction * 100).toFixed(1)}%`;
}
