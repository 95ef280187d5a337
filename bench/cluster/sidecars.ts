/**
 * What a sidecar costs in a real cluster: the memory of each further one, and the time until a pod
 * is ready, beside the same pod without Svc. Run as root, with the laboratory free:
 *
 *     node bench/cluster/sidecars.ts [PODS]
 *
 * Memory is PSS (proportional set size): pages that processes of one image share are counted once.
 */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import setup from "../../e2e/support/cluster/setup.ts";
import {
  install,
  manifest,
  secret,
  SYSTEM,
  uninstall,
} from "../../e2e/support/cluster/installation.ts";
import { attachLab } from "../../e2e/support/cluster/lab.ts";
import { until } from "../../e2e/support/wait.ts";

const PODS = Number(process.argv[2] ?? 50);
const NAMESPACE = "bench";
/** Starts that are timed, with and without Svc in turn. */
const STARTS = 8;
const WAIT_MS = 600_000;

const stop = await setup();
const lab = attachLab();
const kubectl = (args: readonly string[], input?: string): Promise<string> =>
  lab.kubectl(["--namespace", NAMESPACE, ...args], input);
try {
  await install(lab);
  await lab.kubectl(["create", "namespace", NAMESPACE]);
  await kubectl(
    ["apply", "-f", "-"],
    [
      secret("github", { token: "ghp_bench" }),
      manifest("ModelProvider", "mock", { provider: "mock" }),
      manifest("Provider", "github", {
        type: "github",
        auth: { type: "token", secretRef: "github" },
      }),
      agent("bench", PODS),
    ].join(""),
  );
  await readyPods("bench", PODS);
  const rows = sidecars().map(({ service, envoy }) => [service, envoy] as const);
  console.log(`${rows.length} sidecars, MiB (PSS), median of all:`);
  print(
    "service",
    rows.map(([service]) => service),
  );
  print(
    "Envoy",
    rows.map(([, envoy]) => envoy),
  );
  print(
    "together",
    rows.map(([service, envoy]) => service + envoy),
  );
  const system = await lab.kubectl(["--namespace", SYSTEM, "get", "pods", "-o", "name"]);
  console.log(system.trim());
  await kubectl(["delete", "agent", "bench", "--wait"]);
  await readyPods("bench", 0);
  await timeStarts();
} finally {
  await lab.kubectl(["delete", "namespace", NAMESPACE, "--ignore-not-found"]);
  await uninstall(lab);
  await stop();
}

function agent(name: string, replicas: number): string {
  return manifest("Agent", name, {
    image: "localhost/agent:dev",
    imagePullPolicy: "Never",
    replicas,
    models: ["mock/small"],
    providers: ["github"],
    resources: { requests: { cpu: "1m", memory: "1Mi" } },
    terminationGracePeriodSeconds: 1,
  });
}

async function readyPods(name: string, count: number): Promise<void> {
  await until(
    async () => {
      const text = await kubectl([
        ...["get", "pods", "-l", `svc.io/agent=${name}`, "-o"],
        'jsonpath={.items[*].status.conditions[?(@.type=="Ready")].status}',
      ]);
      const states = text.split(" ").filter((state) => state !== "");
      return states.length === count && states.every((state) => state === "True");
    },
    { what: `${count} ready pods`, timeoutMs: WAIT_MS },
  );
}

interface Sidecar {
  readonly service: number;
  readonly envoy: number;
}

/** All sidecars of the machine, by their cgroup: one is a container of one pod. */
function sidecars(): readonly Sidecar[] {
  const byContainer = new Map<string, { service?: number; envoy?: number }>();
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
      const isService = command.includes("sidecar-pod.js") && !command.includes("setpriv");
      const isEnvoy = command.includes("/run/svc-sidecar/envoy.json");
      if (!isService && !isEnvoy) continue;
      const container = readlinkSync(`/proc/${pid}/ns/mnt`);
      const entry = byContainer.get(container) ?? {};
      const kib = Number(
        /^Pss:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"))?.[1],
      );
      byContainer.set(container, { ...entry, [isService ? "service" : "envoy"]: kib / 1024 });
    } catch {
      // The process has ended.
    }
  }
  return [...byContainer.values()].filter(
    (entry): entry is Sidecar => entry.service !== undefined && entry.envoy !== undefined,
  );
}

/** The same container as a plain pod, and as an agent, in turn. */
async function timeStarts(): Promise<void> {
  const times = { plain: [] as number[], agent: [] as number[] };
  for (let i = 0; i < STARTS; i += 1) {
    const plain = `plain-${i}`;
    times.plain.push(
      await timed(async () => {
        await kubectl(["run", plain, "--image=localhost/agent:dev", "--image-pull-policy=Never"]);
        await kubectl(["wait", "--for=condition=Ready", `pod/${plain}`, "--timeout=60s"]);
      }),
    );
    const name = `agent-${i}`;
    times.agent.push(
      await timed(async () => {
        await kubectl(["apply", "-f", "-"], agent(name, 1));
        await readyPods(name, 1);
      }),
    );
    await kubectl(["delete", "pod", plain, "--grace-period=0", "--force"]);
    await kubectl(["delete", "agent", name]);
  }
  console.log("seconds from kubectl apply until the pod is ready:");
  print("plain pod", times.plain);
  print("agent", times.agent);
}

async function timed(work: () => Promise<void>): Promise<number> {
  const start = performance.now();
  await work();
  return (performance.now() - start) / 1000;
}

function print(name: string, values: readonly number[]): void {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number): string =>
    (sorted[Math.floor((sorted.length - 1) * share)] ?? 0).toFixed(1);
  console.log(`  ${name}: median ${at(0.5)}, min ${at(0)}, max ${at(1)}`);
}
