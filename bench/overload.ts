/**
 * `make bench ARGS=--overload`: a well-behaved tenant together with one attacker of each kind, and
 * with all of them at once. Reports its errors and latencies with and without the attacker, and the
 * maximum memory of the processes.
 */
import path from "node:path";
import { MODEL, UPSTREAM_KEY } from "./answers.ts";
import { type Attack, type AttackJob, ATTACKS } from "./attacks.ts";
import { startGateway } from "./gateway.ts";
import type { LoadJob, LoadResult } from "./load.ts";
import type { Processes } from "./processes.ts";
import { startOutside, writeCertificates } from "./sidecar.ts";
import { startSidecarProxy } from "./sidecar-proxy.ts";
import { type ProcessTree, residentMiB } from "./stats.ts";
import type { Target } from "./target.ts";

export interface OverloadOptions {
  readonly root: string;
  /** Envoy. */
  readonly binary: string;
  readonly dir: string;
  readonly processes: Processes;
  readonly upstream: { readonly target: Target; readonly tree: ProcessTree };
  /** Seconds for each attacker. */
  readonly seconds: number;
  readonly attackers: readonly Attack[];
  /** Seconds for all of them together. */
  readonly allSeconds: number;
  readonly machine: () => string;
  readonly progress: (line: string) => void;
}

/** Response time of the mock model: a short answer of a fast model. */
export const MODEL_DELAY_MS = 200;

/** Load of the tenant: somewhat more than that of an agent. */
const TENANT = { stream: false, connections: 16, rate: 20 };

/** Interval between measurements of memory. */
const SAMPLE_MS = 250;

interface Row {
  readonly name: string;
  readonly tenant: LoadResult;
  readonly rssMiB: number;
  /** Answers to the attackers, by status. */
  readonly answered: Readonly<Record<string, number>>;
}

export async function measureOverload(options: OverloadOptions): Promise<string> {
  const { upstream, progress } = options;
  const gateway = await startGateway({
    ...options,
    upstreamPort: upstream.target.port,
    more: objects(upstream.target.port),
  });
  const { tree } = gateway;
  if (tree === undefined) throw new Error("the gateway has no processes");
  const job = await attackJob(options, gateway);
  const pids = tree.named.map(({ pid }) => pid);
  const rows: Row[] = [];
  const measure = async (name: string, attacks: readonly Attack[], seconds: number) => {
    const row = await measureRow(options, gateway, { name, attacks, seconds, job });
    progress(
      `${name.padEnd(12)} ${row.tenant.count} good, ${errorsOf(row.tenant)} bad, p99 ` +
        `${row.tenant.latencyMs.p99.toFixed(0)} ms, ${row.rssMiB.toFixed(0)} MiB, ` +
        `${JSON.stringify(row.answered)} ${JSON.stringify(row.tenant.errors)}`,
    );
    rows.push(row);
  };
  await measure("nobody", [], options.seconds);
  for (const kind of options.attackers) {
    await measure(kind, [kind], options.seconds);
  }
  await measure("all at once", options.attackers, options.allSeconds);
  const restarted = pids.some((pid) => residentMiB({ pid, name: "", named: [] }, "VmRSS") === 0);
  return render(rows, restarted, options.machine());
}

/** A provider of another dialect, and the attackers' agents. */
function objects(upstreamPort: number): object[] {
  const object = (kind: string, name: string, spec: object): object => ({
    apiVersion: "svc.io/v1",
    kind,
    metadata: { name },
    spec,
  });
  const apiKeySecretRef = { name: "foreign", key: "api-key" };
  const baseURL = `http://127.0.0.1:${upstreamPort}/v1`;
  return [
    {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: "foreign" },
      stringData: { "api-key": UPSTREAM_KEY },
    },
    object("ModelProvider", "foreign", { provider: "anthropic", baseURL, apiKeySecretRef }),
    object("Agent", "attacker", { models: ["bench/*", "foreign/*"] }),
    object("Agent", "limited", { models: ["bench/*"], rateLimits: { requestsPerMinute: 1 } }),
  ];
}

async function attackJob(
  { root, binary, dir, processes }: OverloadOptions,
  gateway: Target,
): Promise<Omit<AttackJob, "kind">> {
  const token = async (agent: string): Promise<string> => {
    const state = path.join(dir, gateway.name, "state");
    const args = [path.join(root, "dist/svc.js"), "token", agent, "--state-dir", state];
    return (await processes.output({ place: "measuring", command: process.execPath, args })).trim();
  };
  const files = writeCertificates(dir);
  const outside = await startOutside(processes, files);
  const sidecar = await startSidecarProxy({
    root,
    binary,
    dir,
    processes,
    upstream: outside,
    authorityFile: files.authority,
    place: "measuring",
    auditDir: path.join(dir, gateway.name, "state", "audit"),
  });
  return {
    sidecar: { port: sidecar.port, caFile: sidecar.caFile },
    port: gateway.port,
    key: await token("attacker"),
    limitedKey: await token("limited"),
    model: `bench/${MODEL}`,
    foreignModel: `foreign/${MODEL}`,
  };
}

async function measureRow(
  { processes, upstream }: OverloadOptions,
  gateway: Target,
  plan: {
    readonly name: string;
    readonly attacks: readonly Attack[];
    readonly seconds: number;
    readonly job: Omit<AttackJob, "kind">;
  },
): Promise<Row> {
  const script = (name: string): string => path.join(import.meta.dirname, name);
  const attackers = plan.attacks.map((kind) => {
    const child = processes.start({
      place: "measuring",
      nice: true,
      command: process.execPath,
      args: [script("attacker.ts"), JSON.stringify({ ...plan.job, kind })],
    });
    let printed = "";
    child.stdout?.on("data", (part: Buffer) => (printed += part.toString()));
    return { child, printed: () => printed };
  });
  let rssMiB = 0;
  const sampling = setInterval(() => {
    if (gateway.tree !== undefined) rssMiB = Math.max(rssMiB, residentMiB(gateway.tree, "VmRSS"));
  }, SAMPLE_MS);
  const load: LoadJob = {
    ...TENANT,
    port: gateway.port,
    key: gateway.key,
    model: gateway.model,
    seconds: plan.seconds,
    upstream: upstream.tree,
  };
  const printed = await processes.output({
    place: "measuring",
    command: process.execPath,
    args: [script("load.ts"), JSON.stringify(load)],
  });
  clearInterval(sampling);
  const answered: Record<string, number> = {};
  await Promise.all(
    attackers.map(async ({ child, printed: said }) => {
      const gone = new Promise((resolve) => child.once("close", resolve));
      child.kill("SIGTERM");
      await gone;
      const statuses = JSON.parse(said() || "{}") as Record<string, number>;
      for (const [status, count] of Object.entries(statuses))
        answered[status] = (answered[status] ?? 0) + count;
    }),
  );
  const tenant = JSON.parse(printed, (_, value: unknown) => value ?? Number.NaN) as LoadResult;
  return { name: plan.name, tenant, rssMiB, answered };
}

function errorsOf({ errors }: LoadResult): number {
  return Object.values(errors).reduce((sum, count) => sum + count, 0);
}

function render(rows: readonly Row[], restarted: boolean, machine: string): string {
  const base = rows[0]?.tenant.latencyMs.p99 ?? Number.NaN;
  const lines = rows.map(({ name, tenant, rssMiB, answered }) => {
    const { p50, p99 } = tenant.latencyMs;
    const what = (ATTACKS as Readonly<Record<string, string>>)[name] ?? "";
    const statuses = Object.entries(answered)
      .sort(([a], [b]) => a.localeCompare(b))
      .map(([status, count]) => `${count} × ${status}`)
      .join(", ");
    const cells = [
      what === "" ? name : `${name}: ${what}`,
      `${tenant.count} / ${errorsOf(tenant)}`,
      p50.toFixed(0),
      p99.toFixed(0),
      (p99 / base).toFixed(2),
      rssMiB.toFixed(0),
      statuses || "none",
    ];
    return `| ${cells.join(" | ")} |`;
  });
  return [
    `The tenant makes ${TENANT.rate} calls a second of a model that takes ${MODEL_DELAY_MS} ms.`,
    "",
    "| attacker | calls good / failed | p50, ms | p99, ms | p99, times | memory, MiB | " +
      "answers to the attacker |",
    "| --- | ---: | ---: | ---: | ---: | ---: | --- |",
    ...lines,
    "",
    restarted ? "A process was restarted." : "No process was restarted.",
    machine,
    "",
  ].join("\n");
}
