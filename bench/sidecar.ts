/**
 * `make bench ARGS=--sidecar`: compares the binding proxy with bare Envoy that forwards the same
 * requests without checks.
 */
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { CertificateAuthority } from "../src/interception/ca.ts";
import { systemClock } from "../src/platform/clock.ts";
import { startBareTls } from "./bare-tls.ts";
import type { LoadJob, LoadResult } from "./load.ts";
import { CONNECTIONS, LOW_RATE, shuffled } from "./phases.ts";
import { type Processes, until } from "./processes.ts";
import {
  AGENTS_TOKEN,
  graphqlRequest,
  HOST,
  REAL_TOKEN,
  restRequest,
  SIDECAR_RATE,
} from "./service.ts";
import type { SidecarPhase, SidecarRound } from "./sidecar-round.ts";
import { startSidecarProxy } from "./sidecar-proxy.ts";
import { renderSidecar, type Resident } from "./sidecar-report.ts";
import { type ProcessTree, residentMiB } from "./stats.ts";
import { checkDenial, checkOverTls, type TlsTarget } from "./tls-target.ts";

interface Phase {
  readonly request: (token: string) => string;
  readonly fresh: boolean;
  readonly rate?: number;
  readonly connections: number;
}

const PHASES: Readonly<Record<SidecarPhase, Phase>> = {
  low: { request: restRequest, fresh: false, rate: LOW_RATE, connections: 16 },
  steady: { request: restRequest, fresh: false, rate: SIDECAR_RATE, connections: CONNECTIONS },
  max: { request: restRequest, fresh: false, connections: CONNECTIONS },
  fresh: { request: restRequest, fresh: true, connections: CONNECTIONS },
  body: { request: graphqlRequest, fresh: false, connections: CONNECTIONS },
};

export interface SidecarBenchOptions {
  readonly root: string;
  readonly binary: string;
  readonly dir: string;
  readonly processes: Processes;
  readonly rounds: number;
  readonly seconds: number;
  readonly machine: () => string;
  readonly progress: (line: string) => void;
}

/** Time until memory and garbage collection of the started processes have settled. */
const SETTLE_MS = 5_000;

/** @returns a Markdown table */
export async function measureSidecar(options: SidecarBenchOptions): Promise<string> {
  const { root, binary, dir, processes, progress } = options;
  const files = writeCertificates(dir);
  const outside = await startOutside(processes, files);
  const targets: readonly TlsTarget[] = [
    { name: "service", port: outside.port, caFile: files.authority, tree: undefined },
    await startBareTls({ binary, dir, processes, upstreamPort: outside.port, files }),
    await startSidecarProxy({
      root,
      binary,
      dir,
      processes,
      upstream: outside,
      authorityFile: files.authority,
    }),
  ];
  const [direct, bare, sidecar] = targets as [TlsTarget, TlsTarget, TlsTarget];
  for (const target of [bare, sidecar]) await checkOverTls(target);
  await checkDenial(sidecar);
  progress("Answers are whole, the service sees its own token, and what is forbidden stays out.");

  await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
  const idle = resident([bare, sidecar], "VmRSS");
  const rounds: SidecarRound[] = [];
  for (let number = 1; number <= options.rounds; number++) {
    progress(`Round ${number} of ${options.rounds}`);
    rounds.push(await measureRound(targets, outside.tree, options));
  }
  return renderSidecar({
    rounds,
    idle,
    peak: resident([bare, sidecar], "VmHWM"),
    names: { direct: direct.name, bare: bare.name, sidecar: sidecar.name },
    machine: options.machine(),
  });
}

/** One certificate, as the sidecar creates them: bare Envoy and the service itself use it. */
export function writeCertificates(dir: string): {
  readonly authority: string;
  readonly certificate: string;
  readonly key: string;
} {
  const authority = new CertificateAuthority({
    clock: systemClock,
    random: (bytes) => randomBytes(bytes),
    names: { hosts: [HOST], patterns: [] },
  });
  const minted = authority.mint(HOST);
  if (minted === undefined) throw new Error(`no certificate for ${HOST}`);
  const files = {
    authority: path.join(dir, "service-ca.pem"),
    certificate: path.join(dir, "service.pem"),
    key: path.join(dir, "service.key"),
  };
  writeFileSync(files.authority, authority.certificatesPem);
  writeFileSync(files.certificate, minted.certificateChainPem);
  writeFileSync(files.key, minted.privateKeyPem, { mode: 0o600 });
  authority.close();
  return files;
}

export async function startOutside(
  processes: Processes,
  files: { readonly certificate: string; readonly key: string },
): Promise<{ readonly port: number; readonly dns: number; readonly tree: ProcessTree }> {
  const child = processes.start({
    place: "measuring",
    command: process.execPath,
    args: [path.join(import.meta.dirname, "outside.ts"), files.certificate, files.key],
  });
  let printed = "";
  child.stdout?.on("data", (part: Buffer) => (printed += part.toString()));
  const listening = await until(
    async () =>
      printed === "" ? undefined : (JSON.parse(printed) as { port: number; dns: number }),
    child,
    "the service",
  );
  return { ...listening, tree: { pid: child.pid ?? 0, name: "service", named: [] } };
}

/**
 * Phases in random order, and in each phase the targets in random order right after one another.
 */
async function measureRound(
  targets: readonly TlsTarget[],
  service: ProcessTree,
  { processes, seconds, progress }: SidecarBenchOptions,
): Promise<SidecarRound> {
  const round: Record<SidecarPhase, Record<string, LoadResult>> = {
    low: {},
    steady: {},
    max: {},
    fresh: {},
    body: {},
  };
  for (const name of shuffled(Object.keys(PHASES) as SidecarPhase[])) {
    const { request, ...phase } = PHASES[name];
    for (const target of shuffled(targets)) {
      const job: LoadJob = {
        port: target.port,
        key: "",
        model: "",
        stream: false,
        tls: {
          request: request(target.tree === undefined ? REAL_TOKEN : AGENTS_TOKEN),
          serverName: HOST,
          fresh: phase.fresh,
        },
        connections: phase.connections,
        ...(phase.rate === undefined ? {} : { rate: phase.rate }),
        seconds,
        upstream: service,
        ...(target.tree === undefined ? {} : { tree: target.tree }),
      };
      const printed = await processes.output({
        place: "measuring",
        command: process.execPath,
        args: [path.join(import.meta.dirname, "load.ts"), JSON.stringify(job)],
      });
      // JSON has no NaN: a percentile without samples is null.
      const result = JSON.parse(printed, (_, value: unknown) => value ?? Number.NaN) as LoadResult;
      round[name][target.name] = result;
      const errors = Object.entries(result.errors).map(([error, count]) => `${count} × ${error}`);
      const cpu = Object.entries(result.cpu).map(
        ([process, used]) => `${process} ${((used / result.count) * 1e6).toFixed(0)}`,
      );
      progress(
        `${name.padEnd(6)} ${target.name.padEnd(10)} ` +
          `${result.perSecond.toFixed(0).padStart(5)}/s  p50 ` +
          `${result.latencyMs.p50.toFixed(2)} ms  p99 ${result.latencyMs.p99.toFixed(2)} ms` +
          `  CPU ms per 1,000: ${cpu.join(", ")}  ` +
          (errors.length === 0 ? "no errors" : errors.join(", ")),
      );
    }
  }
  return round;
}

/** By target, then by process, MiB. */
function resident(targets: readonly TlsTarget[], field: "VmRSS" | "VmHWM"): Resident {
  return Object.fromEntries(
    targets.map(({ name, tree }) => {
      const processes = tree === undefined ? [] : [tree, ...(tree.beside ?? [])];
      return [
        name,
        Object.fromEntries(
          processes.map((process) => [
            process.name,
            residentMiB({ pid: process.pid, name: process.name, named: [] }, field),
          ]),
        ),
      ];
    }),
  );
}
