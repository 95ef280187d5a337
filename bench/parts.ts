/**
 * Measures the cost of limits and the audit chain: the same gateway without them, with them, and
 * with its counters in Redis.
 */
import { execFileSync } from "node:child_process";
import { cpuPer1000, eachRound, type Figure, number, over, spread } from "./figures.ts";
import {
  CONNECTIONS,
  LOW_RATE,
  type PhaseName,
  type Round,
  STEADY_RATE,
  STREAM_RATE,
} from "./phases.ts";
import { freePort, type Processes, until } from "./processes.ts";
import { startGateway } from "./gateway.ts";
import { median } from "./stats.ts";
import type { Target } from "./target.ts";

export const PARTS_PHASES: readonly PhaseName[] = ["low", "steady", "max", "stream", "burst"];

const NAMES = { plain: "neither", memory: "both", redis: "both, Redis" } as const;

export interface PartsOptions {
  readonly root: string;
  readonly upstreamPort: number;
  readonly dir: string;
  readonly processes: Processes;
}

export async function startParts(options: PartsOptions): Promise<readonly Target[]> {
  const redis = await startRedis(options);
  return [
    await startGateway({ ...options, name: NAMES.plain, args: ["--no-audit"], limited: false }),
    await startGateway({ ...options, name: NAMES.memory }),
    await startGateway({
      ...options,
      name: NAMES.redis,
      args: ["--redis-url", `redis://127.0.0.1:${redis.port}`],
      beside: [{ pid: redis.pid, name: "Redis" }],
    }),
  ];
}

async function startRedis({
  dir,
  processes,
}: PartsOptions): Promise<{ readonly port: number; readonly pid: number }> {
  const port = await freePort();
  const binary = process.env["REDIS_PATH"] ?? "redis-server";
  const child = processes.start({
    // In a cluster it runs elsewhere and does not use the gateway's CPU.
    place: "measuring",
    command: binary,
    args: [
      "--port",
      String(port),
      "--bind",
      "127.0.0.1",
      "--save",
      "",
      "--appendonly",
      "no",
      "--dir",
      dir,
      "--loglevel",
      "warning",
    ],
  });
  await until(
    async () => {
      try {
        return execFileSync("redis-cli", ["-p", String(port), "ping"], {
          encoding: "utf8",
          stdio: "pipe",
        }).startsWith("PONG")
          ? true
          : undefined;
      } catch {
        return undefined;
      }
    },
    child,
    "Redis",
  );
  return { port, pid: child.pid ?? 0 };
}

export function renderParts(rounds: readonly Round[], machine: string): string {
  const each = (phase: PhaseName, target: string, figure: Figure): number[] =>
    eachRound(rounds, phase, target, figure);
  const ratio = (left: readonly number[], right: readonly number[]): string =>
    spread(over(left, right), (value) => `${number(value)}×`);
  const row = (label: string, phase: PhaseName, figure: Figure): string[] => {
    const [plain, memory, redis] = [NAMES.plain, NAMES.memory, NAMES.redis].map((name) =>
      each(phase, name, figure),
    ) as [number[], number[], number[]];
    return [
      label,
      number(median(plain)),
      number(median(memory)),
      ratio(memory, plain),
      number(median(redis)),
      ratio(redis, plain),
    ];
  };
  const gateway = cpuPer1000("Envoy", "Node", "supervisor");
  const rows = [
    ["", NAMES.plain, NAMES.memory, "to neither", NAMES.redis, "to neither"],
    ["---", "---:", "---:", "---:", "---:", "---:"],
    row(`CPU per 1,000 requests at ${STEADY_RATE}/s, ms`, "steady", gateway),
    row("&nbsp;&nbsp;of it Envoy", "steady", cpuPer1000("Envoy")),
    row("&nbsp;&nbsp;of it Node", "steady", cpuPer1000("Node")),
    [
      "&nbsp;&nbsp;beside it Redis",
      "",
      "",
      "",
      number(median(each("steady", NAMES.redis, cpuPer1000("Redis")))),
      "",
    ],
    row(`Latency p99 at ${STEADY_RATE}/s, ms`, "steady", ({ latencyMs }) => latencyMs.p99),
    row(`CPU per 1,000 requests, ${CONNECTIONS} connections, ms`, "max", gateway),
    row("&nbsp;&nbsp;of it Envoy", "max", cpuPer1000("Envoy")),
    row("&nbsp;&nbsp;of it Node", "max", cpuPer1000("Node")),
    [
      "&nbsp;&nbsp;beside it Redis",
      "",
      "",
      "",
      number(median(each("max", NAMES.redis, cpuPer1000("Redis")))),
      "",
    ],
    row(`Requests/s, ${CONNECTIONS} connections`, "max", ({ perSecond }) => perSecond),
    row(`Latency p50, ${CONNECTIONS} connections, ms`, "max", ({ latencyMs }) => latencyMs.p50),
    row(`Latency p99, ${CONNECTIONS} connections, ms`, "max", ({ latencyMs }) => latencyMs.p99),
    row(`Latency p50 at ${LOW_RATE}/s, ms`, "low", ({ latencyMs }) => latencyMs.p50),
    row(`Latency p99 at ${LOW_RATE}/s, ms`, "low", ({ latencyMs }) => latencyMs.p99),
    row(
      `First token p50 at ${STREAM_RATE} streams/s, ms`,
      "stream",
      ({ firstByteMs }) => firstByteMs.p50,
    ),
    row(
      `First token p99 at ${STREAM_RATE} streams/s, ms`,
      "stream",
      ({ firstByteMs }) => firstByteMs.p99,
    ),
    row(`CPU per 1,000 streams, ${CONNECTIONS} at once, ms`, "burst", gateway),
  ];
  return [
    ...rows.map((cells) => `| ${cells.join(" | ")} |`),
    "",
    `Medians of ${rounds.length} rounds; a ratio is of the same round, with its minimum ` +
      "and maximum.",
    "",
    machine,
    "",
  ].join("\n");
}
