/** The sidecar's rounds as one Markdown table. */
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
import { CONNECTIONS, LOW_RATE } from "./phases.ts";
import { BODY_BYTES, SIDECAR_RATE } from "./service.ts";
import type { SidecarPhase, SidecarRound } from "./sidecar-round.ts";
import { median } from "./stats.ts";

/** MiB by target, then by process. */
export type Resident = Readonly<Record<string, Readonly<Record<string, number>>>>;

export interface SidecarReport {
  readonly rounds: readonly SidecarRound[];
  readonly idle: Resident;
  readonly peak: Resident;
  readonly names: { readonly direct: string; readonly bare: string; readonly sidecar: string };
  readonly machine: string;
}

export function renderSidecar({ rounds, idle, peak, names, machine }: SidecarReport): string {
  const each = (phase: SidecarPhase, target: string, figure: Figure): number[] =>
    eachRound(rounds, phase, target, figure);

  /** Milliseconds that a proxy adds to the service alone, measured in the same round. */
  const added = (label: string, phase: SidecarPhase, figure: Figure): string[] => {
    const [direct, bare, sidecar] = [names.direct, names.bare, names.sidecar].map((name) =>
      each(phase, name, figure),
    ) as [number[], number[], number[]];
    return [
      `${label}, ms`,
      number(median(direct)),
      signed(median(minus(bare, direct))),
      signed(median(minus(sidecar, direct))),
      spread(minus(sidecar, bare), (value) => `${signed(value)} ms`),
    ];
  };
  const latency = (label: string, phase: SidecarPhase): string[][] => [
    added(`${label}, p50`, phase, ({ latencyMs }) => latencyMs.p50),
    added(`${label}, p99`, phase, ({ latencyMs }) => latencyMs.p99),
  ];
  const ratio = (label: string, phase: SidecarPhase, figure: Figure): string[] => {
    const [bare, sidecar] = [each(phase, names.bare, figure), each(phase, names.sidecar, figure)];
    return [
      label,
      "",
      number(median(bare)),
      number(median(sidecar)),
      spread(over(sidecar, bare), (value) => `${number(value)}×`),
    ];
  };
  const cpu = (what: string, phase: SidecarPhase, how?: string): string[][] => [
    ratio(`CPU per 1,000 ${what}${how === undefined ? "" : `, ${how}`}, ms`, phase, cpuPer1000()),
    ...["Envoy", "Node"].map((process) => {
      const sidecar = each(phase, names.sidecar, cpuPer1000(process));
      return [
        `&nbsp;&nbsp;of it ${process}`,
        "",
        "",
        number(median(sidecar)),
        `${number(median(over(sidecar, each(phase, names.bare, cpuPer1000()))))}×`,
      ];
    }),
    ratio(`&nbsp;&nbsp;${what}/s`, phase, ({ perSecond }) => perSecond),
  ];
  const resident = (label: string, of: Resident): string[] => {
    const parts = of[names.sidecar] ?? {};
    const words = Object.entries(parts).map(
      ([process, mebibytes]) => `${process} ${number(mebibytes)}`,
    );
    return [
      `Memory (RSS) ${label}, MiB`,
      "",
      number(sum(Object.values(of[names.bare] ?? {}))),
      number(sum(Object.values(parts))),
      words.join(", "),
    ];
  };
  const errors = (target: string): string => {
    const results = rounds.flatMap((round) =>
      Object.values(round).flatMap((targets) => targets[target] ?? []),
    );
    const failed = sum(results.map((result) => sum(Object.values(result.errors))));
    return `${failed} of ${failed + sum(results.map((result) => result.count))}`;
  };
  const rows = [
    ["", "service alone", "bare Envoy", "sidecar", "sidecar to bare Envoy"],
    ["---", "---:", "---:", "---:", "---:"],
    ...latency(`Latency at ${LOW_RATE}/s`, "low"),
    ...cpu("requests", "steady", `at ${SIDECAR_RATE}/s`),
    ...cpu("requests", "max", `${CONNECTIONS} connections`),
    ...latency(`Latency, ${CONNECTIONS} connections`, "max"),
    ...cpu("new connections", "fresh"),
    ...cpu(`bodies of ${BODY_BYTES / 1024} KiB`, "body"),
    resident("idle", idle),
    resident("peak", peak),
    ["Errors", errors(names.direct), errors(names.bare), errors(names.sidecar), ""],
  ];
  const results = rounds.flatMap((round) =>
    Object.values(round).flatMap((targets) => Object.values(targets)),
  );
  const others = results.map(({ otherCores }) => otherCores);
  return [
    ...rows.map((row) => `| ${row.join(" | ")} |`),
    "",
    `Medians of ${rounds.length} round${rounds.length === 1 ? "" : "s"}; a ratio or ` +
      `difference is of the same round. "+" is what a proxy adds to the service alone. ` +
      "Load generator and service used " +
      `${number(median(each("max", names.bare, ({ measuringCores }) => measuringCores)))} ` +
      "of a core while they drove bare Envoy at its maximum; " +
      `processes outside the benchmark used ${number(median(others))} cores, at most ` +
      `${number(Math.max(...others))}.`,
    "",
    machine,
    "",
  ].join("\n");
}
