/** The rounds as Markdown tables. */
import {
  cpuPer1000,
  eachRound,
  type Figure,
  minus,
  number,
  over,
  signed,
  spread,
  sum,
} from "./figures.ts";
import type { LoadResult } from "./load.ts";
import { TOOLS } from "./mcp-messages.ts";
import {
  BIG_PROMPT_KIB,
  CONNECTIONS,
  LLM_PHASES,
  LOW_RATE,
  MCP_PHASES,
  type PhaseName,
  type Round,
  STEADY_RATE,
  STREAM_RATE,
} from "./phases.ts";
import { median } from "./stats.ts";

export interface Memory {
  readonly idleMiB: number;
  readonly peakMiB: number;
}

interface Names {
  readonly direct: string;
  readonly bare: string;
  readonly gateway: string;
}

export interface Report {
  readonly rounds: readonly Round[];
  /** By target. */
  readonly memory: Readonly<Record<string, Memory>>;
  readonly names: Names;
  readonly machine: string;
}

/** Rows of a table that compares the gateway with bare Envoy. */
class Comparison {
  readonly #rounds: readonly Round[];
  readonly #names: Names;
  readonly #phases: readonly PhaseName[];

  /** @param phases that count for errors */
  constructor(rounds: readonly Round[], names: Names, phases: readonly PhaseName[]) {
    this.#rounds = rounds;
    this.#names = names;
    this.#phases = phases;
  }

  each(phase: PhaseName, target: string, figure: Figure): number[] {
    return eachRound(this.#rounds, phase, target, figure);
  }

  /** Milliseconds that a proxy adds to the upstream alone, measured in the same round. */
  added(label: string, phase: PhaseName, figure: Figure): string[] {
    const { direct: upstream, bare: envoy, gateway: ours } = this.#names;
    const [direct, bare, gateway] = [upstream, envoy, ours].map((name) =>
      this.each(phase, name, figure),
    ) as [number[], number[], number[]];
    return [
      `${label}, ms`,
      number(median(direct)),
      signed(median(minus(bare, direct))),
      signed(median(minus(gateway, direct))),
      spread(minus(gateway, bare), (value) => `${signed(value)} ms`),
    ];
  }

  ratio(label: string, phase: PhaseName, figure: Figure): string[] {
    const { bare: envoy, gateway: ours } = this.#names;
    const [bare, gateway] = [this.each(phase, envoy, figure), this.each(phase, ours, figure)];
    return [
      label,
      "",
      number(median(bare)),
      number(median(gateway)),
      spread(over(gateway, bare), (value) => `${number(value)}×`),
    ];
  }

  /** CPU time, and the parts of the gateway's, each compared with all of bare Envoy's. */
  cpu(label: string, phase: PhaseName): string[][] {
    const { bare: envoy, gateway: ours } = this.#names;
    const bare = this.each(phase, envoy, cpuPer1000());
    const parts = ["Envoy", "Node", "supervisor"].map((process) => {
      const gateway = this.each(phase, ours, cpuPer1000(process));
      return [
        `&nbsp;&nbsp;of it ${process}`,
        "",
        process === "Envoy" ? number(median(bare)) : "",
        number(median(gateway)),
        `${number(median(over(gateway, bare)))}×`,
      ];
    });
    return [this.ratio(`CPU per 1,000 ${label}, ms`, phase, cpuPer1000()), ...parts];
  }

  errors(): string[] {
    const of = (target: string): string => {
      const results = this.#resultsOf(target);
      const failed = sum(results.map((result) => sum(Object.values(result.errors))));
      return `${failed} of ${failed + sum(results.map((result) => result.count))}`;
    };
    const { direct, bare, gateway } = this.#names;
    return ["Errors", of(direct), of(bare), of(gateway), ""];
  }

  /**
   * Describes how the figures came about.
   * @param busiest phase at the maximum rate
   */
  notes(busiest: PhaseName): string {
    const limit = median(
      this.each(busiest, this.#names.bare, ({ measuringCores }) => measuringCores),
    );
    const others = Object.values(this.#names)
      .flatMap((target: string) => this.#resultsOf(target))
      .map(({ otherCores }) => otherCores);
    const isOne = this.#rounds.length === 1;
    return (
      `Medians of ${this.#rounds.length} round${isOne ? "" : "s"}; a ratio or ` +
      `difference is of the same round${isOne ? "" : ", with its minimum and maximum"}. ` +
      `"+" is what a proxy adds to the upstream alone. Load generator and upstream used ` +
      `${number(limit)} of a core while they drove bare Envoy at its maximum; ` +
      `processes outside the benchmark used ${number(median(others))} cores, at most ` +
      `${number(Math.max(...others))}.`
    );
  }

  #resultsOf(target: string): LoadResult[] {
    return this.#rounds.flatMap((round) =>
      this.#phases.flatMap((phase) => round[phase][target] ?? []),
    );
  }
}

const HEAD = [
  ["", "upstream alone", "bare Envoy", "gateway", "gateway to bare Envoy"],
  ["---", "---:", "---:", "---:", "---:"],
];

function table(rows: readonly (readonly string[])[], ...notes: readonly string[]): string {
  const lines = [...HEAD, ...rows].map((row) => `| ${row.join(" | ")} |`);
  return [...lines, ...notes.flatMap((note) => ["", note]), ""].join("\n");
}

/** Calls of models. */
export function renderReport({ rounds, memory, names, machine }: Report): string {
  const compared = new Comparison(rounds, names, LLM_PHASES);
  const resident = (label: string, field: keyof Memory): string[] => {
    const bare = memory[names.bare]?.[field] ?? Number.NaN;
    const gateway = memory[names.gateway]?.[field] ?? Number.NaN;
    return [label, "", number(bare), number(gateway), `${number(gateway / bare)}×`];
  };
  const firstByte = (share: "p50" | "p99"): string[] =>
    compared.added(
      `First token ${share} at ${STREAM_RATE} streams/s`,
      "stream",
      ({ firstByteMs }) => firstByteMs[share],
    );
  const rows = [
    compared.added(`Latency p50 at ${LOW_RATE}/s`, "low", ({ latencyMs }) => latencyMs.p50),
    compared.added(`Latency p99 at ${LOW_RATE}/s`, "low", ({ latencyMs }) => latencyMs.p99),
    compared.ratio(`Requests/s, ${CONNECTIONS} connections`, "max", ({ perSecond }) => perSecond),
    ...compared.cpu(`requests, ${CONNECTIONS} connections`, "max"),
    ...compared.cpu(`requests at ${STEADY_RATE}/s`, "steady"),
    ...compared.cpu(`requests of ${BIG_PROMPT_KIB} KiB`, "big"),
    firstByte("p50"),
    firstByte("p99"),
    ...compared.cpu(`streams, ${CONNECTIONS} at once`, "burst"),
    resident("Memory (RSS) idle, MiB", "idleMiB"),
    resident("Memory (RSS) peak, MiB", "peakMiB"),
    compared.errors(),
  ];
  return table(rows, compared.notes("max"), machine);
}

/** Calls of tools. */
export function renderMcpReport({ rounds, names, machine }: Omit<Report, "memory">): string {
  const compared = new Comparison(rounds, names, MCP_PHASES);
  const latency = (method: string, phase: PhaseName): string[][] =>
    (["p50", "p99"] as const).map((share) =>
      compared.added(
        `${method}: latency ${share} at ${LOW_RATE}/s`,
        phase,
        ({ latencyMs }) => latencyMs[share],
      ),
    );
  const rows = [
    ...latency("`tools/call`", "call"),
    ...compared.cpu(`\`tools/call\` at ${STEADY_RATE}/s`, "calls"),
    ...compared.cpu(`\`tools/call\` at ${STEADY_RATE}/s, answered as an event`, "events"),
    ...compared.cpu(`\`tools/call\`, ${CONNECTIONS} connections`, "callMax"),
    compared.ratio(
      `\`tools/call\`/s, ${CONNECTIONS} connections`,
      "callMax",
      ({ perSecond }) => perSecond,
    ),
    ...latency(`\`tools/list\` of ${TOOLS} tools, half of them denied`, "list"),
    ...compared.cpu(`\`tools/list\` at ${STEADY_RATE}/s`, "lists"),
    compared.errors(),
  ];
  return table(rows, compared.notes("callMax"), machine);
}
