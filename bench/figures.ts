/** Computes figures from rounds, and formats them. */
import type { LoadResult } from "./load.ts";
import { median } from "./stats.ts";

export type Figure = (result: LoadResult) => number;

export const sum = (values: readonly number[]): number =>
  values.reduce((total, value) => total + value, 0);

/** Milliseconds of CPU for 1,000 requests: of the processes that are named, or of all. */
export function cpuPer1000(...processes: readonly string[]): Figure {
  return ({ cpu, count }) =>
    (sum(
      processes.length === 0 ? Object.values(cpu) : processes.map((process) => cpu[process] ?? 0),
    ) /
      count) *
    1e6;
}

/** The figure of one target in each round; NaN where it was not measured. */
export function eachRound<Phase extends string>(
  rounds: readonly Readonly<Record<Phase, Readonly<Partial<Record<string, LoadResult>>>>>[],
  phase: Phase,
  target: string,
  figure: Figure,
): number[] {
  return rounds.map((round) => {
    const result = round[phase][target];
    return result === undefined ? Number.NaN : figure(result);
  });
}

/** Combines figures of the same rounds. */
export function minus(left: readonly number[], right: readonly number[]): number[] {
  return left.map((value, index) => value - (right[index] ?? Number.NaN));
}

/** Combines figures of the same rounds. */
export function over(left: readonly number[], right: readonly number[]): number[] {
  return left.map((value, index) => value / (right[index] ?? Number.NaN));
}

/** Formats three significant digits. */
export function number(value: number): string {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2);
}

export function signed(value: number): string {
  return value < 0 ? number(value) : `+${number(value)}`;
}

/** Formats the median over the rounds, with minimum and maximum if there are several. */
export function spread(values: readonly number[], render: (value: number) => string): string {
  const range =
    values.length > 1 ? ` (${number(Math.min(...values))} to ${number(Math.max(...values))})` : "";
  return render(median(values)) + range;
}
