/** The Envoys of an installation: those of gateways, and the sidecars of agents. */
import { inParallel } from "../../sources/folder/scan.ts";
import type { GatewayProxy, ProxyReport, SidecarProxy } from "../proxies.ts";
import { parseMetrics } from "../render-metrics.ts";
import {
  agentPods,
  askPod,
  GATEWAY,
  gatewayPods,
  type Pod,
  portOf,
  SIDECAR,
  whyNotRunning,
  whyUnanswered,
} from "./pods.ts";
import type { ClusterSession } from "./session.ts";
import { askGateways } from "./status.ts";

/** @throws ApiError */
export async function readProxies(session: ClusterSession): Promise<ProxyReport> {
  const [pods, answers, agents] = await Promise.all([
    gatewayPods(session),
    askGateways(session),
    agentPods(session),
  ]);
  const byName = new Map(answers.map((answer) => [answer.pod.name, answer]));
  return {
    gateways: pods.map((pod): GatewayProxy => {
      const answer = byName.get(pod.name);
      return {
        name: pod.name,
        ready: pod.ready,
        problem: answer?.problem ?? answer?.status?.reason ?? whyNotRunning(pod, GATEWAY.container),
        envoys: answer?.status?.envoys ?? [],
      };
    }),
    sidecars: await inParallel(
      // An ended task has no sidecar to ask.
      agents.filter((pod) => pod.running && portOf(pod, SIDECAR.container, SIDECAR.port)),
      async (pod) => sidecarOf(session, pod),
    ),
  };
}

async function sidecarOf(session: ClusterSession, pod: Pod): Promise<SidecarProxy> {
  const port = portOf(pod, SIDECAR.container, SIDECAR.port) ?? 0;
  const found = pod.containers.find(({ name }) => name === SIDECAR.container);
  const known = {
    namespace: pod.namespace,
    pod: pod.name,
    agent: pod.labels["svc.io/agent"] ?? "",
    restarts: found?.restartCount ?? 0,
  };
  const waiting = whyNotRunning(pod, SIDECAR.container);
  if (waiting !== undefined) return { ...known, ready: false, policy: undefined, problem: waiting };
  try {
    const text = String(await askPod(session, pod, port, "/metrics"));
    return { ...known, ready: found?.ready === true, policy: policyOf(text), problem: undefined };
  } catch (error) {
    return {
      ...known,
      ready: found?.ready === true,
      policy: undefined,
      problem: whyUnanswered(error),
    };
  }
}

function policyOf(metrics: string): SidecarProxy["policy"] {
  const samples = parseMetrics(metrics);
  const valueOf = (wanted: string): number | undefined =>
    samples.find(({ name }) => name === wanted)?.value;
  const inForce = valueOf("svc_binding_reload_ok");
  if (inForce === undefined) return undefined;
  if (inForce !== 1) return "outdated";
  return (valueOf("svc_binding_changes_waiting") ?? 0) > 0 ? "restart-needed" : "in-force";
}
