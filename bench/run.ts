/**
 * `make bench`: bare Envoy and the gateway side by side on one machine, each driven in turn, in
 * random order, round by round. Prints a Markdown table to standard output, and its progress to
 * standard error.
 */
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { MODEL, UPSTREAM_KEY } from "./answers.ts";
import { findEnvoy, startEnvoy } from "./envoy.ts";
import { startGateway } from "./gateway.ts";
import { type Attack, ATTACKS } from "./attacks.ts";
import { measureOverload, MODEL_DELAY_MS } from "./overload.ts";
import { MCP_PATH } from "./mcp-messages.ts";
import { checkMcp } from "./mcp-target.ts";
import { LLM_PHASES, MCP_PHASES, measureRound, type PhaseName, type Round } from "./phases.ts";
import { GUARD_PHASES, renderGuard, startGuarded } from "./guard.ts";
import { PARTS_PHASES, renderParts, startParts } from "./parts.ts";
import { Processes, until } from "./processes.ts";
import { measureSidecar } from "./sidecar.ts";
import { type Memory, renderMcpReport, renderReport } from "./report.ts";
import { type ProcessTree, residentMiB } from "./stats.ts";
import { check, checkRefusal, type Target } from "./target.ts";

const ROOT = path.resolve(import.meta.dirname, "..");
const HELP = `Usage: make bench ARGS="[--rounds N] [--seconds N] [--quick] [--mcp | --parts | --guard | --sidecar | --overload]"

  --rounds N    rounds, each with every kind of load (default 5)
  --seconds N   how long each kind of load lasts for each target (default 5)
  --mcp         only the MCP gateway beside bare Envoy; without it, models and tools are measured
  --parts       what limits and the audit chain add, with and without Redis, instead of all beside bare Envoy
  --guard       what a guard adds, with verdicts that are remembered and with a request to the classifier for each call
  --sidecar     the binding proxy beside bare Envoy that ends TLS and starts it again, instead of the gateway
  --overload    a tenant beside attackers, each for --seconds, and all of them for --all-seconds (default 600)
  --attackers   with --overload: the attackers to measure, separated by commas (default: every kind)
  --quick       one round of 2 seconds: to see it work, not for figures
`;
/** Time until memory and garbage collection of the started processes have settled. */
const SETTLE_MS = 2_000;

interface Options {
  readonly rounds: number;
  readonly seconds: number;
  readonly mcp: boolean;
  readonly parts: boolean;
  readonly guard: boolean;
  readonly sidecar: boolean;
  readonly overload: boolean;
  readonly allSeconds: number;
  readonly attackers: readonly Attack[];
}

/** Returns undefined if only the help is requested. */
function readOptions(): Options | undefined {
  const { values } = parseArgs({
    options: {
      rounds: { type: "string" },
      seconds: { type: "string" },
      quick: { type: "boolean", default: false },
      mcp: { type: "boolean", default: false },
      parts: { type: "boolean", default: false },
      guard: { type: "boolean", default: false },
      sidecar: { type: "boolean", default: false },
      overload: { type: "boolean", default: false },
      "all-seconds": { type: "string" },
      attackers: { type: "string" },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  if (values.help) return undefined;
  const positive = (text: string | undefined, otherwise: number): number => {
    const value = Number(text ?? otherwise);
    if (!(value > 0)) throw new Error(`${text} is not a number above 0. See ARGS=--help.`);
    return value;
  };
  return {
    rounds: Math.ceil(positive(values.rounds, values.quick ? 1 : 5)),
    seconds: positive(values.seconds, values.quick ? 2 : 5),
    mcp: values.mcp,
    parts: values.parts,
    guard: values.guard,
    sidecar: values.sidecar,
    overload: values.overload,
    allSeconds: positive(values["all-seconds"], values.quick ? 5 : 600),
    attackers: attackersOf(values.attackers),
  };
}

function attackersOf(names: string | undefined): readonly Attack[] {
  const known = Object.keys(ATTACKS);
  const chosen = names?.split(",") ?? known;
  const unknown = chosen.find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw new Error(`--attackers: ${unknown} is not one of ${known.join(", ")}.`);
  return chosen as Attack[];
}

function progress(line: string): void {
  process.stderr.write(`${line}\n`);
}

async function startUpstream(
  processes: Processes,
  delayMs: number,
): Promise<{ readonly target: Target; readonly tree: ProcessTree }> {
  const child = processes.start({
    place: "measuring",
    command: process.execPath,
    args: [path.join(import.meta.dirname, "upstream.ts"), "--delay", String(delayMs)],
  });
  let printed = "";
  child.stdout?.on("data", (part: Buffer) => (printed += part.toString()));
  const { port } = await until(
    async () => (printed === "" ? undefined : (JSON.parse(printed) as { port: number })),
    child,
    "the upstream",
  );
  return {
    target: {
      name: "upstream",
      port,
      key: UPSTREAM_KEY,
      model: MODEL,
      mcp: { path: MCP_PATH, key: UPSTREAM_KEY },
      tree: undefined,
    },
    tree: { pid: child.pid ?? 0, name: "upstream", named: [] },
  };
}

function machine(envoy: string, processes: Processes): string {
  const version =
    /\d+\.\d+\.\d+(?=\/)/.exec(execFileSync(envoy, ["--version"], { encoding: "utf8" }))?.[0] ??
    "of unknown version";
  const { cpus } = processes;
  const pinned =
    cpus === undefined
      ? "nothing pinned"
      : `proxies on CPU ${cpus.measured}, load and upstream on CPU ${cpus.measuring}`;
  const load = os
    .loadavg()
    .map((value) => value.toFixed(1))
    .join(" ");
  const model = os.cpus()[0]?.model.trim() ?? "unknown CPU";
  return (
    `Machine: ${os.availableParallelism()} cores (${model}), Linux ${os.release()}, Node ` +
    `${process.version.slice(1)}, Envoy ${version}; ${pinned}; load average at the end ` +
    `${load}.`
  );
}

async function bench(
  options: Options | undefined,
  processes: Processes,
  dir: string,
): Promise<string> {
  if (options === undefined) return HELP;
  if (!existsSync(path.join(ROOT, "dist/svc.js")))
    throw new Error("dist/svc.js is missing: run `make build`.");
  const binary = findEnvoy(ROOT);
  if (options.sidecar)
    return measureSidecar({
      ...options,
      root: ROOT,
      binary,
      dir,
      processes,
      machine: () => machine(binary, processes),
      progress,
    });
  const upstream = await startUpstream(processes, options.overload ? MODEL_DELAY_MS : 0);
  if (options.overload) {
    const described = (): string => machine(binary, processes);
    return measureOverload({
      ...options,
      root: ROOT,
      binary,
      dir,
      processes,
      upstream,
      machine: described,
      progress,
    });
  }
  const upstreamPort = upstream.target.port;
  const started = { binary, upstream, processes, dir };
  if (options.parts) {
    return measureTargets(options, started, {
      start: startParts,
      phases: PARTS_PHASES,
      render: renderParts,
    });
  }
  if (options.guard) {
    return measureTargets(options, started, {
      start: startGuarded,
      phases: GUARD_PHASES,
      render: renderGuard,
    });
  }
  const proxies = [
    await startEnvoy({ binary, upstreamPort, dir, processes }),
    await startGateway({ root: ROOT, upstreamPort, dir, processes }),
  ] as const;
  const targets = [upstream.target, ...proxies];
  await checkRefusal(upstream.target);
  for (const target of targets) await check(target);
  for (const target of targets) await checkMcp(target, target === proxies[1]);
  progress("Answers and streams are whole, and the upstream sees its own key.");

  await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
  const resident = (field: "VmRSS" | "VmHWM"): number[] =>
    proxies.map(({ tree }) => (tree === undefined ? 0 : residentMiB(tree, field)));
  const idle = resident("VmRSS");
  const phases = options.mcp ? MCP_PHASES : [...LLM_PHASES, ...MCP_PHASES];
  const rounds: Round[] = [];
  for (let number = 1; number <= options.rounds; number++) {
    progress(`Round ${number} of ${options.rounds}`);
    rounds.push(
      await measureRound(
        { processes, targets, upstream: upstream.tree, seconds: options.seconds, progress },
        phases,
      ),
    );
  }
  const peak = resident("VmHWM");
  const memory: Record<string, Memory> = {};
  for (const [index, { name }] of proxies.entries())
    memory[name] = { idleMiB: idle[index] ?? 0, peakMiB: peak[index] ?? 0 };
  const report = {
    rounds,
    memory,
    names: { direct: upstream.target.name, bare: proxies[0].name, gateway: proxies[1].name },
    machine: machine(binary, processes),
  };
  return options.mcp
    ? renderMcpReport(report)
    : `${renderReport(report)}\n${renderMcpReport(report)}`;
}

interface Comparison {
  readonly start: (options: {
    readonly root: string;
    readonly upstreamPort: number;
    readonly dir: string;
    readonly processes: Processes;
  }) => Promise<readonly Target[]>;
  readonly phases: readonly PhaseName[];
  readonly render: (rounds: readonly Round[], machine: string) => string;
}

/** Compares gateways with each other. */
async function measureTargets(
  options: Options,
  {
    binary,
    upstream,
    processes,
    dir,
  }: {
    readonly binary: string;
    readonly upstream: Awaited<ReturnType<typeof startUpstream>>;
    readonly processes: Processes;
    readonly dir: string;
  },
  { start, phases, render }: Comparison,
): Promise<string> {
  const { port } = upstream.target;
  const targets = await start({ root: ROOT, upstreamPort: port, dir, processes });
  for (const target of targets) await check(target);
  await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
  const rounds: Round[] = [];
  for (let number = 1; number <= options.rounds; number++) {
    progress(`Round ${number} of ${options.rounds}`);
    rounds.push(
      await measureRound(
        { processes, targets, upstream: upstream.tree, seconds: options.seconds, progress },
        phases,
      ),
    );
  }
  return render(rounds, machine(binary, processes));
}

async function main(): Promise<void> {
  const processes = new Processes();
  const dir = mkdtempSync(path.join(os.tmpdir(), "svc-bench-"));
  process.on("exit", () => rmSync(dir, { recursive: true, force: true }));
  let interrupted = false;
  const interrupt = (): void => {
    if (interrupted) process.exit(130);
    interrupted = true;
    processes.stop().then(
      () => process.exit(130),
      () => process.exit(130),
    );
  };
  process.on("SIGINT", interrupt);
  process.on("SIGTERM", interrupt);
  try {
    process.stdout.write(await bench(readOptions(), processes, dir));
  } catch (error) {
    // Output of an interrupted load generator is ignored.
    if (interrupted) return;
    process.exitCode = 1;
    process.stderr.write(`bench: ${error instanceof Error ? error.message : String(error)}\n`);
  } finally {
    await processes.stop();
  }
}

await main();
