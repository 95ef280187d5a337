/** The kinds of load, and one round of all of them. */
import path from "node:path";
import type { LoadJob, LoadResult } from "./load.ts";
import type { McpAsk } from "./mcp-messages.ts";
import type { Processes } from "./processes.ts";
import type { ProcessTree } from "./stats.ts";
import type { Target } from "./target.ts";

/** Kinds of load on the LLM gateway. */
type LlmPhaseName = "low" | "steady" | "max" | "stream" | "burst" | "big";

/** Kinds of load on the MCP gateway. */
type McpPhaseName = "call" | "calls" | "callMax" | "events" | "list" | "lists";

export type PhaseName = LlmPhaseName | McpPhaseName;

interface Phase {
  readonly job: Pick<LoadJob, "stream" | "connections" | "rate" | "promptBytes">;
  /** What an MCP client asks for; undefined for a chat completion. */
  readonly mcp?: McpAsk;
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
  call: { job: { stream: false, connections: 16, rate: LOW_RATE }, mcp: "call", direct: true },
  calls: {
    job: { stream: false, connections: CONNECTIONS, rate: STEADY_RATE },
    mcp: "call",
    direct: false,
  },
  callMax: { job: { stream: false, connections: CONNECTIONS }, mcp: "call", direct: false },
  events: {
    job: { stream: false, connections: CONNECTIONS, rate: STEADY_RATE },
    mcp: "call as event",
    direct: false,
  },
  list: { job: { stream: false, connections: 16, rate: LOW_RATE }, mcp: "list", direct: true },
  lists: {
    job: { stream: false, connections: CONNECTIONS, rate: STEADY_RATE },
    mcp: "list",
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

const ALL_PHASES = Object.keys(PHASES) as PhaseName[];

export const MCP_PHASES = ALL_PHASES.filter((name) => PHASES[name].mcp !== undefined);

export const LLM_PHASES = ALL_PHASES.filter((name) => PHASES[name].mcp === undefined);

/**
 * Phases in random order, and in each phase the targets in random order right after one another.
 */
export async function measureRound(bench: Bench, phases: readonly PhaseName[]): Promise<Round> {
  const round = Object.fromEntries(
    ALL_PHASES.map((name): [string, Record<string, LoadResult>] => [name, {}]),
  ) as Record<PhaseName, Record<string, LoadResult>>;
  for (const name of shuffled(phases)) {
    const phase = PHASES[name];
    const targets = bench.targets.filter((target) => phase.direct || target.tree !== undefined);
    for (const target of shuffled(targets)) {
      const result = await measure(bench, phase, target);
      round[name][target.name] = result;
      const errors = Object.entries(result.errors).map(([error, count]) => `${count} × ${error}`);
      bench.progress(
        `${name.padEnd(7)} ${target.name.padEnd(10)} ${result.perSecond.toFixed(0).padStart(5)}/s` +
          `  p50 ${result.latencyMs.p50.toFixed(2)} ms  p99 ${result.latencyMs.p99.toFixed(2)} ms` +
          `  first byte p50 ${result.firstByteMs.p50.toFixed(2)} ms  ` +
          (errors.length === 0 ? "no errors" : errors.join(", ")),
      );
    }
  }
  return round;
}

async function measure(bench: Bench, phase: Phase, target: Target): Promise<LoadResult> {
  const { mcp } = target;
  if (phase.mcp !== undefined && mcp === undefined)
    throw new Error(`${target.name} has no MCP server`);
  const job: LoadJob = {
    ...phase.job,
    ...(target.unique === true && { unique: true }),
    ...(phase.mcp === undefined || mcp === undefined ? {} : { mcp: { ...mcp, ask: phase.mcp } }),
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
