/** Pods of an installation and of its agents, and their ports through the API server. */
import { ApiError } from "../../kubernetes/connection.ts";
import { CORE, type KubeObject, objectPath } from "../../kubernetes/objects.ts";
import type { ClusterSession } from "./session.ts";

/** A pod, as far as the command line looks into it. */
export interface Pod {
  readonly namespace: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly ready: boolean;
  /** Whether its containers run: others cannot be asked. */
  readonly running: boolean;
  readonly spec: PodSpec;
  readonly containers: readonly ContainerStatus[];
}

export interface PodSpec {
  readonly initContainers?: readonly Container[];
  readonly containers?: readonly Container[];
  readonly imagePullSecrets?: readonly { readonly name: string }[];
  readonly securityContext?: { readonly runAsUser?: number; readonly fsGroup?: number };
  readonly volumes?: readonly {
    readonly name: string;
    readonly persistentVolumeClaim?: { readonly claimName: string };
  }[];
}

interface Container {
  readonly name: string;
  readonly image?: string;
  readonly imagePullPolicy?: string;
  readonly ports?: readonly { readonly name?: string; readonly containerPort: number }[];
}

interface ContainerStatus {
  readonly name: string;
  readonly ready: boolean;
  readonly restartCount: number;
  readonly state?: {
    readonly running?: object;
    readonly waiting?: { readonly reason?: string; readonly message?: string };
    readonly terminated?: { readonly reason?: string; readonly exitCode?: number };
  };
}

interface PodStatus {
  readonly phase?: string;
  readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  readonly initContainerStatuses?: readonly ContainerStatus[];
  readonly containerStatuses?: readonly ContainerStatus[];
}

/** The port of a gateway's pod with its state, and the one with its metrics. */
export const GATEWAY_PORTS = { admin: 8002, http: 8000 } as const;

/** Container of an agent's sidecar, the name of its port with metrics, and its chains' volume. */
export const SIDECAR = {
  container: "svc-sidecar",
  port: "svc-metrics",
  audit: "svc-audit",
} as const;

/** Container of a gateway's pod, and its chains' volume. */
export const GATEWAY = { container: "gateway", audit: "audit" } as const;

/** Pods of the gateway that have not ended and are not leaving. @throws ApiError */
export async function gatewayPods({ client, systemNamespace }: ClusterSession): Promise<Pod[]> {
  const labelSelector = "app.kubernetes.io/part-of=svc,app.kubernetes.io/component=gateway";
  const { items } = await client.list(CORE.pod, systemNamespace, { labelSelector });
  return items.filter(isThere).map(podOf);
}

/** Pods of agents that have not ended and are not leaving. @throws ApiError */
export async function agentPods({ client }: ClusterSession, namespace?: string): Promise<Pod[]> {
  const labelSelector = "app.kubernetes.io/name=svc,app.kubernetes.io/component=agent";
  const { items } = await client.list(CORE.pod, namespace, { labelSelector });
  return items.filter(isThere).map(podOf);
}

function isThere(object: KubeObject): boolean {
  return object.metadata.deletionTimestamp === undefined && !hasEnded(object);
}

/** Returns whether a pod will not run again. */
export function hasEnded(object: KubeObject): boolean {
  const { phase = "" } = (object["status"] ?? {}) as PodStatus;
  return phase === "Succeeded" || phase === "Failed";
}

/** Returns the parts of a pod that the command line looks into. */
export function podOf({ metadata, ...object }: KubeObject): Pod {
  const status = (object["status"] ?? {}) as PodStatus;
  return {
    namespace: metadata.namespace ?? "",
    name: metadata.name,
    labels: metadata.labels ?? {},
    ready: status.conditions?.some((one) => one.type === "Ready" && one.status === "True") === true,
    running: status.phase === "Running",
    spec: object["spec"] ?? {},
    containers: [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])],
  };
}

/**
 * Asks a port of a pod through the API server, which must reach the pod's network.
 * @returns the parsed JSON of the answer, or its text
 * @throws ApiError
 */
export function askPod(
  { connection }: ClusterSession,
  { namespace, name }: Pick<Pod, "namespace" | "name">,
  port: number,
  path: string,
): Promise<unknown> {
  const pod = objectPath(CORE.pod, { namespace, name: `http:${name}:${port}` });
  return connection.request(`${pod}/proxy${path}`);
}

/** Why a pod could not be asked, in one line. */
export function whyUnanswered(error: unknown): string {
  if (!(error instanceof ApiError)) throw error;
  return error.status === 403
    ? `you may not ask it: ${error.message}`
    : `it does not answer: ${error.message}`;
}

/** Returns why a container does not run; undefined if it does, or is not known. */
export function whyNotRunning(pod: Pod, container: string): string | undefined {
  const found = pod.containers.find(({ name }) => name === container);
  const { waiting, terminated } = found?.state ?? {};
  if (waiting !== undefined) return [waiting.reason, waiting.message].filter(Boolean).join(": ");
  if (terminated !== undefined)
    return `${terminated.reason ?? "ended"} (exit code ${terminated.exitCode ?? "unknown"})`;
  return undefined;
}

/** Returns a named port of a container; undefined if it has none. */
export function portOf({ spec }: Pod, container: string, port: string): number | undefined {
  return [...(spec.initContainers ?? []), ...(spec.containers ?? [])]
    .find(({ name }) => name === container)
    ?.ports?.find(({ name }) => name === port)?.containerPort;
}
