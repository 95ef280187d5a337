/** An installation in an API server in memory, for tests. */
import { CORE, type KubeKind } from "../../kubernetes/objects.ts";
import { ScriptedApiServer } from "./testing-api.ts";
import { KINDS, RESOURCE_KINDS } from "../../resources/kinds.ts";
import { type ClusterSession, openSession } from "./session.ts";

export const SYSTEM = "svc-system";

export const GATEWAY_STATUS = {
  ready: true,
  policyVersion: "1",
  activeCalls: 0,
  objects: [],
  problems: [],
  envoys: [],
} as const;

const labelsOf = (component: string): Readonly<Record<string, string>> => ({
  "app.kubernetes.io/name": "svc",
  "app.kubernetes.io/part-of": "svc",
  "app.kubernetes.io/component": component,
});

interface FakeAgentPod {
  readonly labels?: Readonly<Record<string, string>>;
  readonly spec?: object;
  readonly phase?: string;
  readonly ready?: boolean;
}

/** A gateway and a controller, with one pod each, and an agent's pod in the namespace `team`. */
export class FakeInstallation {
  readonly api: ScriptedApiServer;
  readonly session: ClusterSession;

  private constructor(api: ScriptedApiServer) {
    this.api = api;
    this.session = openSession({
      context: undefined,
      kubeconfig: api.kubeconfig(),
      systemNamespace: SYSTEM,
    });
  }

  static async start(): Promise<FakeInstallation> {
    const installation = new FakeInstallation(await ScriptedApiServer.start());
    for (const component of ["gateway", "controller"]) installation.deployment(component, 1);
    installation.pod("gw-1");
    installation.sidecar("svc-hello-1");
    installation.serve(RESOURCE_KINDS.filter((kind) => KINDS[kind].crd !== undefined));
    installation.gateway("gw-1", GATEWAY_STATUS);
    return installation;
  }

  /** Sets which kinds the API serves. */
  serve(kinds: readonly string[]): void {
    this.api.answer("/apis/svc.io/v1", { resources: kinds.map((kind) => ({ kind })) });
  }

  deployment(component: string, ready: number, more: object = {}): void {
    const status = { observedGeneration: 9, replicas: 1, updatedReplicas: 1, readyReplicas: ready };
    const metadata = {
      name: `svc-${component}`,
      namespace: SYSTEM,
      labels: labelsOf(component),
    };
    this.put(CORE.deployment, { metadata, spec: { replicas: 1, ...more }, status });
  }

  /** A pod of the gateway. */
  pod(name: string, status: object = {}, spec: object = {}): void {
    this.put(CORE.pod, {
      metadata: { name, namespace: SYSTEM, labels: labelsOf("gateway") },
      spec: { containers: [{ name: "gateway" }], ...spec },
      status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }], ...status },
    });
  }

  /**
   * A pod of the agent `hello`.
   * @param container state of its sidecar
   */
  sidecar(name: string, container: object = {}, more: FakeAgentPod = {}): void {
    const labels = { ...labelsOf("agent"), "svc.io/agent": "hello", ...more.labels };
    const ports = [{ name: "svc-metrics", containerPort: 8090 }];
    const initContainers = [{ name: "svc-sidecar", ports }];
    const ready = more.ready === true ? "True" : "False";
    this.put(CORE.pod, {
      metadata: { name, namespace: "team", labels },
      spec: { initContainers, containers: [{ name: "agent" }], ...more.spec },
      status: {
        phase: more.phase ?? "Running",
        conditions: [{ type: "Ready", status: ready }],
        initContainerStatuses: [
          { name: "svc-sidecar", ready: true, restartCount: 0, ...container },
        ],
      },
    });
  }

  /** Sets the controller's configuration. */
  configure(config: object): void {
    const whole = {
      images: { proxy: "svc-proxy", svc: "svc" },
      gateway: { host: "svc-gateway.svc-system.svc.cluster.local" },
      ...config,
    };
    this.put(CORE.configMap, {
      metadata: { name: "svc-controller", namespace: SYSTEM, labels: labelsOf("controller") },
      data: { "controller.yaml": JSON.stringify(whole) },
    });
  }

  /** Sets what a gateway's pod says of itself. */
  gateway(pod: string, status: unknown, code = 200): void {
    this.api.answer(proxied(SYSTEM, pod, 8002, "/status"), status, code);
  }

  metricsOf(namespace: string, pod: string, port: number, text: string): void {
    this.api.answer(proxied(namespace, pod, port, "/metrics"), text);
  }

  put(kind: KubeKind, object: object): void {
    this.api.put(kind, object);
  }

  async close(): Promise<void> {
    this.session.connection.close();
    await this.api.close();
  }
}

export function proxied(namespace: string, pod: string, port: number, path: string): string {
  return `/api/v1/namespaces/${namespace}/pods/http:${pod}:${port}/proxy${path}`;
}
