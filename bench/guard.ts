/**
 * Measures what a guard adds to a call: the same gateway without one, with verdicts that it
 * remembers, and with a request to the classifier for each call. The classifier is the stub, so
 * that the figures are those of the gateway.
 */
import path from "node:path";
import {
  cpuPer1000,
  eachRound,
  type Figure,
  minus,
  number,
  over,
  signed,
  spread,
} from "./figures.ts";
import { BIG_PROMPT_KIB, CONNECTIONS, LOW_RATE, type PhaseName, type Round } from "./phases.ts";
import { freePort, type Processes, until } from "./processes.ts";
import { startGateway } from "./gateway.ts";
import { median } from "./stats.ts";
import type { Target } from "./target.ts";

export const GUARD_PHASES: readonly PhaseName[] = ["low", "max", "big", "stream"];

const NAMES = { plain: "no guard", remembered: "remembered", asked: "asked" } as const;

const GUARD = "bench";

export async function startGuarded(options: {
  readonly root: string;
  readonly upstreamPort: number;
  readonly dir: string;
  readonly processes: Processes;
}): Promise<readonly Target[]> {
  const endpoint = await startClassifier(options);
  const plain = await startGateway({ ...options, name: NAMES.plain });
  const guarded = await startGateway({
    ...options,
    name: NAMES.remembered,
    guard: GUARD,
    more: [
      {
        apiVersion: "svc.io/v1",
        kind: "GuardBinding",
        metadata: { name: GUARD },
        spec: { classifier: { type: "stub", endpoint } },
      },
    ],
  });
  return [plain, guarded, { ...guarded, name: NAMES.asked, unique: true }];
}

/** @returns its address */
async function startClassifier({
  root,
  processes,
}: {
  readonly root: string;
  readonly processes: Processes;
}): Promise<string> {
  const port = await freePort();
  const address = `http://127.0.0.1:${port}`;
  const child = processes.start({
    // In a cluster it runs elsewhere.
    place: "measuring",
    command: process.execPath,
    args: [
      path.join(root, "dist/svc.js"),
      "guard",
      "--type",
      "stub",
      "--listen",
      `127.0.0.1:${port}`,
    ],
  });
  const answers = async (): Promise<true | undefined> => {
    try {
      return (await fetch(`${address}/healthz`)).ok ? true : undefined;
    } catch {
      return undefined;
    }
  };
  await until(answers, child, "the classifier");
  return address;
}

export function renderGuard(rounds: readonly Round[], machine: string): string {
  const each = (phase: PhaseName, target: string, figure: Figure): number[] =>
    eachRound(rounds, phase, target, figure);
  const row = (
    label: string,
    phase: PhaseName,
    figure: Figure,
    compare: (guarded: readonly number[], plain: readonly number[]) => string,
  ): string[] => {
    const plain = each(phase, NAMES.plain, figure);
    const [remembered, asked] = [NAMES.remembered, NAMES.asked].map((name) => {
      const guarded = each(phase, name, figure);
      return [number(median(guarded)), compare(guarded, plain)];
    }) as [string[], string[]];
    return [label, number(median(plain)), ...remembered, ...asked];
  };
  const ratio = (left: readonly number[], right: readonly number[]): string =>
    spread(over(left, right), (value) => `${number(value)}×`);
  const difference = (left: readonly number[], right: readonly number[]): string =>
    spread(minus(left, right), (value) => `${signed(value)} ms`);
  const gateway = cpuPer1000("Envoy", "Node", "supervisor");
  const p50: Figure = ({ latencyMs }) => latencyMs.p50;
  const p99: Figure = ({ latencyMs }) => latencyMs.p99;
  const rows = [
    ["", NAMES.plain, NAMES.remembered, "to no guard", NAMES.asked, "to no guard"],
    ["---", "---:", "---:", "---:", "---:", "---:"],
    row(`Latency p50 at ${LOW_RATE}/s, ms`, "low", p50, difference),
    row(`Latency p99 at ${LOW_RATE}/s, ms`, "low", p99, difference),
    row(
      "First token p50 of streams, ms",
      "stream",
      ({ firstByteMs }) => firstByteMs.p50,
      difference,
    ),
    row(`CPU per 1,000 requests, ${CONNECTIONS} connections, ms`, "max", gateway, ratio),
    row("&nbsp;&nbsp;of it Node", "max", cpuPer1000("Node"), ratio),
    row(`CPU per 1,000 requests of ${BIG_PROMPT_KIB} KiB, ms`, "big", gateway, ratio),
    row("&nbsp;&nbsp;of it Node", "big", cpuPer1000("Node"), ratio),
  ];
  return [
    ...rows.map((cells) => `| ${cells.join(" | ")} |`),
    "",
    `Medians of ${rounds.length} rounds; a ratio or difference is of the same round, with its ` +
      "minimum and maximum. The classifier's CPU is not included.",
    "",
    machine,
    "",
  ].join("\n");
}
