/** The kinds of load, and one round of all of them. */
import path from "node:path";
import type { LoadJob, LoadResult } from "./load.ts";
import type { Processes } from "./processes.ts";
import type { ProcessTree } from "./stats.ts";
import type { Target } from "./target.ts";

export type PhaseName = "low" | "steady" | "max" | "stream" | "burst" | "big";

interface Phase {
  readonly job: Pick<LoadJob, "stream" | "connections" | "rate" | "promptBytes">;
  /** Whether the upstream itself is measured too, to determine the overhead of the others. */
  readonly direct: boolean;
}

export const LOW_RATE = 50;
/**
 * A rate that all targets can handle: CPU per request is compared at the same rate, at which no
 * target handles more requests per wake-up than another.
 */
export const STEADY_RATE = 500;
export const STREAM_RATE = 20;
export const CONNECTIONS = 32;
export const BIG_PROMPT_KIB = 64;

const PHASES: Readonly<Record<PhaseName, Phase>> = {
  low: { job: { stream: false, connections: 16, rate: LOW_RATE }, direct: true },
  steady: { job: { stream: false, connections: CONNECTIONS, rate: STEADY_RATE }, direct: false },
  max: { job: { stream: false, connections: CONNECTIONS }, direct: false },
  stream: { job: { stream: true, connections: 32, rate: STREAM_RATE }, direct: true },
  burst: { job: { stream: true, connections: CONNECTIONS }, direct: false },
  big: {
    job: { stream: false, connections: 8, promptBytes: BIG_PROMPT_KIB * 1024 },
    direct: false,
  },
};

/** Results by phase, then by target. */
export type Round = Readonly<Record<PhaseName, Readonly<Record<string, LoadResult>>>>;

export interface Bench {
  readonly processes: Processes;
  readonly targets: readonly Target[];
  readonly upstream: ProcessTree;
  readonly seconds: number;
  readonly progress: (line: string) => void;
}

export const ALL_PHASES = Object.keys(PHASES) as PhaseName[];

/**
 * Phases in random order, and in each phase the targets in random order right after one another.
 */
export async function measureRound(
  bench: Bench,
  phases: readonly PhaseName[] = ALL_PHASES,
): Promise<Round> {
  const round: Record<PhaseName, Record<string, LoadResult>> = {
    low: {},
    steady: {},
    max: {},
    stream: {},
    burst: {},
    big: {},
  };
  for (const name of shuffled(phases)) {
    const phase = PHASES[name];
    const targets = bench.targets.filter((target) => phase.direct || target.tree !== undefined);
    for (const target of shuffled(targets)) {
      const result = await measure(bench, phase, target);
      round[name][target.name] = result;
      const errors = Object.entries(result.errors).map(([error, count]) => `${count} × ${error}`);
      bench.progress(
        `${name.padEnd(6)} ${target.name.padEnd(10)} ${result.perSecond.toFixed(0).padStart(5)}/s` +
          `  p50 ${result.latencyMs.p50.toFixed(2)} ms  p99 ${result.latencyMs.p99.toFixed(2)} ms` +
          `  first byte p50 ${result.firstByteMs.p50.toFixed(2)} ms  ` +
          (errors.length === 0 ? "no errors" : errors.join(", ")),
      );
    }
  }
  return round;
}

async function measure(bench: Bench, phase: Phase, target: Target): Promise<LoadResult> {
  const job: LoadJob = {
    ...phase.job,
    port: target.port,
    key: target.key,
    model: target.model,
    seconds: bench.seconds,
    upstream: bench.upstream,
    ...(target.tree === undefined ? {} : { tree: target.tree }),
  };
  const printed = await bench.processes.output({
    place: "measuring",
    command: process.execPath,
    args: [path.join(import.meta.dirname, "load.ts"), JSON.stringify(job)],
  });
  // JSON has no NaN: a percentile without samples is null.
  return JSON.parse(printed, (_, value: unknown) => value ?? Number.NaN) as LoadResult;
}

export function shuffled<T>(items: readonly T[]): T[] {
  return items
    .map((item) => ({ item, at: Math.random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item);
}
