/** The rounds as one Markdown table. */
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
import {
  BIG_PROMPT_KIB,
  CONNECTIONS,
  LOW_RATE,
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

export interface Report {
  readonly rounds: readonly Round[];
  /** By target. */
  readonly memory: Readonly<Record<string, Memory>>;
  readonly names: { readonly direct: string; readonly bare: string; readonly gateway: string };
  readonly machine: string;
}

export function renderReport(report: Report): string {
  const { rounds, memory, names, machine } = report;
  const each = (phase: PhaseName, target: string, figure: Figure): number[] =>
    eachRound(rounds, phase, target, figure);

  /** Milliseconds that a proxy adds to the upstream alone, measured in the same round. */
  const added = (label: string, phase: PhaseName, figure: Figure): string[] => {
    const [direct, bare, gateway] = [names.direct, names.bare, names.gateway].map((name) =>
      each(phase, name, figure),
    ) as [number[], number[], number[]];
    return [
      `${label}, ms`,
      number(median(direct)),
      signed(median(minus(bare, direct))),
      signed(median(minus(gateway, direct))),
      spread(minus(gateway, bare), (value) => `${signed(value)} ms`),
    ];
  };
  const ratio = (label: string, phase: PhaseName, figure: Figure): string[] => {
    const [bare, gateway] = [each(phase, names.bare, figure), each(phase, names.gateway, figure)];
    return [
      label,
      "",
      number(median(bare)),
      number(median(gateway)),
      spread(over(gateway, bare), (value) => `${number(value)}×`),
    ];
  };
  /** Parts of the gateway's CPU time, each compared with all of bare Envoy's. */
  const parts = (phase: PhaseName): string[][] =>
    ["Envoy", "Node", "supervisor"].map((process) => {
      const gateway = each(phase, names.gateway, cpuPer1000(process));
      const bare = each(phase, names.bare, cpuPer1000());
      return [
        `&nbsp;&nbsp;of it ${process}`,
        "",
        process === "Envoy" ? number(median(bare)) : "",
        number(median(gateway)),
        `${number(median(over(gateway, bare)))}×`,
      ];
    });
  const resident = (label: string, field: keyof Memory): string[] => {
    const bare = memory[names.bare]?.[field] ?? Number.NaN;
    const gateway = memory[names.gateway]?.[field] ?? Number.NaN;
    return [label, "", number(bare), number(gateway), `${number(gateway / bare)}×`];
  };
  const errors = (target: string): string => {
    const results = rounds.flatMap((round) =>
      Object.values(round).flatMap((targets) => targets[target] ?? []),
    );
    const failed = sum(results.map((result) => sum(Object.values(result.errors))));
    return `${failed} of ${failed + sum(results.map((result) => result.count))}`;
  };

  const rows = [
    ["", "upstream alone", "bare Envoy", "gateway", "gateway to bare Envoy"],
    ["---", "---:", "---:", "---:", "---:"],
    added(`Latency p50 at ${LOW_RATE}/s`, "low", ({ latencyMs }) => latencyMs.p50),
    added(`Latency p99 at ${LOW_RATE}/s`, "low", ({ latencyMs }) => latencyMs.p99),
    ratio(`Requests/s, ${CONNECTIONS} connections`, "max", ({ perSecond }) => perSecond),
    ratio(`CPU per 1,000 requests, ${CONNECTIONS} connections, ms`, "max", cpuPer1000()),
    ...parts("max"),
    ratio(`CPU per 1,000 requests at ${STEADY_RATE}/s, ms`, "steady", cpuPer1000()),
    ...parts("steady"),
    ratio(`CPU per 1,000 requests of ${BIG_PROMPT_KIB} KiB, ms`, "big", cpuPer1000()),
    ...parts("big"),
    added(
      `First token p50 at ${STREAM_RATE} streams/s`,
      "stream",
      ({ firstByteMs }) => firstByteMs.p50,
    ),
    added(
      `First token p99 at ${STREAM_RATE} streams/s`,
      "stream",
      ({ firstByteMs }) => firstByteMs.p99,
    ),
    ratio(`CPU per 1,000 streams, ${CONNECTIONS} at once, ms`, "burst", cpuPer1000()),
    ...parts("burst"),
    resident("Memory (RSS) idle, MiB", "idleMiB"),
    resident("Memory (RSS) peak, MiB", "peakMiB"),
    ["Errors", errors(names.direct), errors(names.bare), errors(names.gateway), ""],
  ];
  const limit = median(each("max", names.bare, ({ measuringCores }) => measuringCores));
  const others = rounds.flatMap((round) =>
    Object.values(round).flatMap((targets) =>
      Object.values(targets).map(({ otherCores }) => otherCores),
    ),
  );
  return [
    ...rows.map((row) => `| ${row.join(" | ")} |`),
    "",
    `Medians of ${rounds.length} round${rounds.length === 1 ? "" : "s"}; a ratio or ` +
      "difference is of the same " +
      `round${rounds.length === 1 ? "" : ", with its minimum and maximum"}. ` +
      `"+" is what a proxy adds to the upstream alone. Load generator and upstream used ` +
      `${number(limit)} of a core while they drove bare Envoy at its maximum; ` +
      `processes outside the benchmark used ${number(median(others))} cores, at most ` +
      `${number(Math.max(...others))}.`,
    "",
    machine,
    "",
  ].join("\n");
}
