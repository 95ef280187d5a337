/**
 * Measures the cost of the audit chain: `node bench/audit.ts [records]`. CPU is the whole process's
 * (including threads that write), so it is an upper bound of the cost per request.
 */
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pino } from "pino";
import { Registry } from "prom-client";
import type { AuditEvent } from "../src/audit/event.ts";
import { findChains } from "../src/audit/chain/layout.ts";
import { verifyChain } from "../src/audit/reader/verify.ts";
import { openAuditWriter } from "../src/audit/writer/writer.ts";
import { systemClock } from "../src/platform/clock.ts";

const count = Number(process.argv[2] ?? 1_000_000);
const PACED_SECONDS = 5;

const event = (i: number): AuditEvent => ({
  type: "LLM_CALL",
  fields: {
    workload: `default/agent-${i % 100}`,
    callId: `01K${String(i).padStart(23, "0")}`,
    provider: "default/anthropic",
    model: "claude-sonnet-4-5",
    operation: "chat",
    dialect: "openai",
    status: 200,
    end: "complete",
    inputTokens: 1000 + (i % 5000),
    outputTokens: 500,
    cachedInputTokens: 0,
    durationMs: 1234,
    costPicoUsd: "123456789",
    usage: "exact",
    retries: 0,
    streamed: true,
    fellBackFrom: undefined,
  },
});

const options = (
  dir: string,
  sync: "group" | "none",
  commitMs = 0,
): Parameters<typeof openAuditWriter>[0] => ({
  dir,
  writer: "bench",
  keyFile: path.join(dir, "audit.key"),
  onFailure: "refuse",
  sync,
  commitMs,
  clock: systemClock,
  log: pino({ level: "silent" }),
  registry: new Registry(),
});

/** At maximum speed, with 256 pending records. */
async function saturate(dir: string, sync: "group" | "none", records: number): Promise<void> {
  const writer = await openAuditWriter(options(dir, sync));
  const cpu = process.cpuUsage();
  const started = performance.now();
  await new Promise<void>((resolve) => {
    let sent = 0;
    let done = 0;
    const next = (): void => {
      if (sent < records) writer.append(event(sent++), landed);
    };
    const landed = (): void => {
      if (++done === records) resolve();
      else next();
    };
    for (let i = 0; i < 256; i++) next();
  });
  report(`saturated, sync ${sync}`, records, performance.now() - started, process.cpuUsage(cpu));
  await writer.close();
}

/** From the files alone. */
function verify(dir: string): void {
  const started = performance.now();
  const [chain] = findChains(dir);
  if (chain === undefined) throw new Error(`no chain in ${dir}`);
  const { records, segments, fault } = verifyChain(chain, {
    keys: [],
    witnesses: [],
    from: undefined,
    maxUnsigned: 0,
  });
  if (fault !== undefined) throw new Error(fault.message);
  const seconds = (performance.now() - started) / 1000;
  const resident = process.memoryUsage.rss() / 1024 / 1024;
  process.stdout.write(
    `verify: ${records} records in ${segments} segments in ${seconds.toFixed(1)} s ` +
      `(${Math.round(records / seconds)} records/s), ${Math.round(resident)} MiB resident\n`,
  );
}

/** At a steady rate, as in a gateway: each record in a turn of its own. */
async function paced(
  dir: string,
  sync: "group" | "none",
  commitMs: number,
  rate: number,
  seconds: number,
): Promise<void> {
  const writer = await openAuditWriter(options(dir, sync, commitMs));
  await pace(rate, 1, (i) => writer.append(event(i)));
  const baseline = await pace(rate, seconds, (i) => void event(i));
  const latencies: number[] = [];
  const used = await pace(rate, seconds, (i) => {
    const at = performance.now();
    writer.append(event(i), () => latencies.push(performance.now() - at));
  });
  latencies.sort((a, b) => a - b);
  const at = (share: number): string =>
    `${(latencies[Math.floor(latencies.length * share)] ?? 0).toFixed(2)} ms`;
  const records = rate * seconds;
  process.stdout.write(
    `${rate}/s, sync ${sync}, a commit each ${commitMs} ms at most: ` +
      `${((used.main - baseline.main) / records).toFixed(1)} µs CPU a record on the main ` +
      `thread, ${((used.all - baseline.all) / records).toFixed(1)} in all (pacing taken ` +
      `off), committed after ${at(0.5)} (p50), ${at(0.99)} (p99)\n`,
  );
  await writer.close();
}

/** Approximates a gateway's other work, which keeps the processor warm and the loop awake. */
function work(): void {
  for (let i = 0; i < 60; i++) createHash("sha256").update(String(i)).digest();
}

/** @returns µs of CPU, of the process and of the thread that decides */
async function pace(
  rate: number,
  seconds: number,
  act: (i: number) => void,
): Promise<{ readonly all: number; readonly main: number }> {
  const cpu = process.cpuUsage();
  const main = process.threadCpuUsage();
  const started = performance.now();
  for (let i = 0; i < rate * seconds;) {
    const due = ((performance.now() - started) / 1000) * rate;
    if (i < due) {
      work();
      act(i++);
      await new Promise(setImmediate);
    } else await sleep(1);
  }
  const all = process.cpuUsage(cpu);
  const thread = process.threadCpuUsage(main);
  return { all: all.user + all.system, main: thread.user + thread.system };
}

function report(name: string, records: number, ms: number, cpu: NodeJS.CpuUsage): void {
  const perSecond = Math.round((records / ms) * 1000);
  process.stdout.write(
    `${name}: ${perSecond} records/s, ${((cpu.user + cpu.system) / records).toFixed(1)} µs ` +
      "CPU a record\n",
  );
}

const root = mkdtempSync(path.join(os.tmpdir(), "svc-bench-audit-"));
try {
  for (const sync of ["group", "none"] as const) {
    for (const commitMs of [0, 2, 5, 10])
      await paced(path.join(root, `${sync}-${commitMs}`), sync, commitMs, 1000, PACED_SECONDS);
  }
  await saturate(path.join(root, "none"), "none", count / 4);
  await saturate(path.join(root, "group"), "group", count);
  verify(path.join(root, "group"));
} finally {
  rmSync(root, { recursive: true, force: true });
}
