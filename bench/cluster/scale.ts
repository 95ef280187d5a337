/**
 * Cost of many resources for the controller and for a gateway, at a real API server: time and
 * requests until all are reconciled, memory, and the time from an edit to its effect. Run by hand,
 * with the laboratory up:
 *
 *     node bench/cluster/scale.ts [agents] [providers for each]
 *
 * The agents have no pods, so that the figures are those of our processes and the API server.
 */
import { CORE } from "../../src/kubernetes/objects.ts";
import { kubeKindOf } from "../../src/sources/kubernetes/own-informers.ts";
import { ControllerBed } from "../../e2e/support/cluster/controller-bed.ts";
import { ControllerProcess } from "../../e2e/support/cluster/controller-process.ts";
import { attachLab } from "../../e2e/support/cluster/lab.ts";
import { until } from "../../e2e/support/wait.ts";
import { median, percentile } from "../stats.ts";
import { GatewayProcess } from "./gateway-process.ts";
import { cpuSecondsOf, memoryOf } from "./process-figures.ts";

const AGENTS = Number(process.argv[2] ?? 500);
const PROVIDERS_EACH = Number(process.argv[3] ?? 4);
/** Requests at once while the resources are declared. */
const PARALLEL = 16;
const SAMPLES = 15;
const LONG = { timeoutMs: 600_000 };

const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;

async function main(): Promise<void> {
  const bed = await ControllerBed.open(attachLab());
  const controller = new ControllerProcess({
    kubeconfig: bed.lab.kubeconfig,
    folder: bed.folder,
    pod: "controller-0",
    namespace: bed.system,
    namespaces: [bed.namespace],
    restarts: true,
    settings: {
      logLevel: "warn",
      leaderElection: { leaseSeconds: 15, renewSeconds: 10, retrySeconds: 2 },
    },
  });
  try {
    await declare(bed);
    await controller.start();
    const startedAt = performance.now();
    await controller.ready();
    print("copies complete after", seconds(performance.now() - startedAt));
    await settled(controller, AGENTS * (1 + PROVIDERS_EACH));
    print("everything reconciled after", seconds(performance.now() - startedAt));
    print("requests", requestsOf(await controller.metrics()));
    print("memory", memoryOf(controller.pid));
    print("CPU", `${cpuSecondsOf(controller.pid).toFixed(1)} s`);
    await allEdits(bed);
    print("memory after the edits", memoryOf(controller.pid));
    await controller.stop();
    await controller.start();
    const restartedAt = performance.now();
    await controller.ready();
    await settled(controller, AGENTS * (1 + PROVIDERS_EACH));
    print("restarted and settled after", seconds(performance.now() - restartedAt));
    print("requests of the restart", requestsOf(await controller.metrics()));
    print("memory after the restart", memoryOf(controller.pid));
    await measureGateway(bed, "without resources", [bed.system]);
    await measureGateway(bed, "with all resources", [bed.namespace]);
  } finally {
    await controller.stop();
    await bed.close();
  }
}

/** Measures a gateway that watches some namespaces, while the controller runs. */
async function measureGateway(
  bed: ControllerBed,
  what: string,
  namespaces: readonly string[],
): Promise<void> {
  const { lab, folder, system } = bed;
  const startedAt = performance.now();
  const gateway = new GatewayProcess({
    kubeconfig: lab.kubeconfig,
    folder,
    namespace: system,
    namespaces,
  });
  try {
    await gateway.ready();
    print(`gateway ${what}: ready after`, seconds(performance.now() - startedAt));
    await gateway.idle();
    print(`gateway ${what}: memory`, memoryOf(gateway.service));
    print(`gateway ${what}: memory of Envoy`, memoryOf(gateway.envoy));
    print(`gateway ${what}: CPU`, `${cpuSecondsOf(gateway.service).toFixed(1)} s`);
    await allEdits(bed);
    await gateway.idle();
    print(`gateway ${what}: memory after the edits`, memoryOf(gateway.service));
  } finally {
    await gateway.stop();
  }
}

async function allEdits(bed: ControllerBed): Promise<void> {
  await edits(bed, "policy of a Provider -> ConfigMap", async (i) => {
    const name = `agent-${i}-provider-0`;
    const action = `pulls:w${i}${Date.now()}`;
    await bed.provider(name, { policy: { allow: [action] } });
    return async () =>
      JSON.stringify(await bed.find(CORE.configMap, `svc-agent-${i}-providers`)).includes(action);
  });
  await edits(bed, "environment of an Agent -> Deployment", async (i) => {
    const value = `w${i}${Date.now()}`;
    await bed.agent(`agent-${i}`, specOf(i, value));
    return async () =>
      JSON.stringify(await bed.find(CORE.deployment, `svc-agent-${i}`)).includes(value);
  });
}

const specOf = (i: number, value: string): object => ({
  replicas: 0,
  models: ["mock/small"],
  providers: Array.from({ length: PROVIDERS_EACH }, (_, j) => `agent-${i}-provider-${j}`),
  env: [{ name: "VALUE", value }],
});

async function declare(bed: ControllerBed): Promise<void> {
  const startedAt = performance.now();
  await bed.declare("ModelProvider", "mock", { provider: "mock" });
  const work = Array.from({ length: AGENTS }, (_, i) => async () => {
    for (let j = 0; j < PROVIDERS_EACH; j += 1) {
      const name = `agent-${i}-provider-${j}`;
      await bed.secret(`${name}-secret`, `ghp_${i}_${j}`);
      await bed.provider(name, { policy: { allow: ["pulls:read"] } });
    }
    await bed.agent(`agent-${i}`, specOf(i, "first"));
  });
  await Promise.all(
    Array.from({ length: PARALLEL }, async () => {
      for (let next = work.pop(); next !== undefined; next = work.pop()) await next();
    }),
  );
  const count = `${AGENTS} Agents, ${AGENTS * PROVIDERS_EACH} Providers with Secrets`;
  print(`${count} declared in`, seconds(performance.now() - startedAt));
}

/** Resolves when a number of reconciliations was made, and none waits. */
async function settled(controller: ControllerProcess, least: number): Promise<void> {
  let last = -1;
  await until(async () => {
    const count = await controller.reconciled();
    const [, depth = "1"] =
      /^svc_controller_queue_depth (\d+)$/m.exec(await controller.metrics()) ?? [];
    const isSettled = count >= least && count === last && depth === "0";
    last = count;
    if (!isSettled) await new Promise((resolve) => setTimeout(resolve, 200));
    return isSettled;
  }, LONG);
}

async function edits(
  bed: ControllerBed,
  what: string,
  edit: (i: number) => Promise<() => Promise<boolean>>,
): Promise<void> {
  const times: number[] = [];
  for (let i = 0; i < SAMPLES; i += 1) {
    const startedAt = performance.now();
    await until(await edit((i * 31) % AGENTS), LONG);
    times.push(performance.now() - startedAt);
  }
  const found = await bed.find(kubeKindOf("Agent"), "agent-0");
  if (found === undefined) throw new Error("the Agents are gone");
  print(what, `median ${median(times).toFixed(0)} ms, p90 ${percentile(times, 0.9).toFixed(0)} ms`);
}

function requestsOf(metrics: string): string {
  const counts = new Map<string, number>();
  const lines = metrics.matchAll(
    /^svc_controller_api_requests_total\{method="(\w+)",status="(\d+)"\} (\d+)$/gm,
  );
  for (const [, method = "", status = "", count] of lines)
    counts.set(`${method} ${status}`, Number(count));
  return [...counts].map(([name, count]) => `${name}: ${count}`).join(", ");
}

function print(name: string, value: string): void {
  process.stdout.write(`${name}: ${value}\n`);
}

await main();
