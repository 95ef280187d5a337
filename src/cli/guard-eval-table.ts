/** The result of `svc guard eval` for people. */
import { type Evaluation, percent, type Rates } from "../guard/eval/evaluate.ts";
import { table } from "./table.ts";

const HEAD = ["THRESHOLD", "INJECTIONS", "JAILBREAKS", "ATTACKS", "FALSE POSITIVES", "PRECISION"];

export function renderEvaluation(evaluation: Evaluation): string {
  const { texts, unavailable, thresholds, rates, latencyMs, byThreshold } = evaluation;
  const { p50, p95, max } = latencyMs;
  const chosen =
    `${thresholds.injection}` +
    (thresholds.injection === thresholds.jailbreak ? "" : ` / ${thresholds.jailbreak}`);
  return [
    `Texts: ${texts.benign} benign, ${texts.injection} injections, ${texts.jailbreak} ` +
      `jailbreaks; ${unavailable} without an answer`,
    `Latency: p50 ${ms(p50)}, p95 ${ms(p95)}, max ${ms(max)}`,
    "",
    "Flagged at the thresholds given (injection / jailbreak):",
    table(HEAD, [row(chosen, rates)]),
    "",
    "Flagged if both thresholds were:",
    table(
      HEAD,
      byThreshold.map((rates) => row(rates.threshold.toFixed(1), rates)),
    ),
    "",
  ].join("\n");
}

function row(threshold: string, { recall, falsePositives, precision }: Rates): readonly string[] {
  return [
    threshold,
    ...[recall.injection, recall.jailbreak, recall.any, falsePositives, precision].map(percent),
  ];
}

function ms(value: number | null): string {
  return value === null ? "-" : `${value.toFixed(value < 10 ? 1 : 0)} ms`;
}
