/** Two namespaces of a real cluster, and what tests of the controller do in them. */
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { type ObjectName, KubeClient } from "../../../src/kubernetes/client.ts";
import { ApiConnection } from "../../../src/kubernetes/connection.ts";
import { CORE, type KubeKind, type KubeObject, nameOf } from "../../../src/kubernetes/objects.ts";
import type { ResourceKind } from "../../../src/resources/kinds.ts";
import { kubeKindOf } from "../../../src/sources/kubernetes/own-informers.ts";
import { until } from "../wait.ts";
import type { Lab } from "./lab.ts";

const ROOT = path.resolve(import.meta.dirname, "../../..");
const SERVICE: KubeKind = { apiVersion: "v1", kind: "Service", plural: "services" };

/** Kinds of the objects that the controller makes for an agent. */
export const GENERATED: readonly KubeKind[] = [
  CORE.deployment,
  CORE.job,
  CORE.configMap,
  CORE.secret,
  CORE.networkPolicy,
];

export interface AgentStatus {
  readonly ready?: boolean;
  readonly reason?: string;
  readonly message?: string;
  readonly phase?: string;
  readonly webhookUrl?: string;
  readonly observedGeneration?: number;
  readonly completedRun?: string;
}

export class ControllerBed {
  readonly client: KubeClient;
  /** Namespace of the installation. */
  readonly system: string;
  /** Namespace of the agents. */
  readonly namespace: string;
  readonly folder: string;
  readonly lab: Lab;

  private constructor(lab: Lab) {
    const id = randomBytes(4).toString("hex");
    this.lab = lab;
    this.client = new KubeClient(ApiConnection.load({ kubeconfig: lab.kubeconfig }), "e2e");
    this.system = `controller-${id}`;
    this.namespace = `agents-${id}`;
    this.folder = mkdtempSync(path.join(tmpdir(), "svc-controller-"));
  }

  static async open(lab: Lab): Promise<ControllerBed> {
    const bed = new ControllerBed(lab);
    const crds = `--filename=${path.join(ROOT, "crds")}`;
    await lab.kubectl([
      "apply",
      "--server-side",
      "--force-conflicts",
      "--field-manager=svc-e2e",
      crds,
    ]);
    await lab.kubectl(["wait", "--for=condition=Established", crds, "--timeout=180s"]);
    for (const name of [bed.system, bed.namespace])
      await lab.kubectl(["create", "namespace", name]);
    await bed.client.create(SERVICE, {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "svc-gateway", namespace: bed.system },
      spec: { ports: [{ port: 8000 }], selector: { app: "none" } },
    });
    return bed;
  }

  async close(): Promise<void> {
    this.client.connection.close();
    rmSync(this.folder, { recursive: true, force: true });
    await this.lab.kubectl([
      "delete",
      "namespace",
      this.system,
      this.namespace,
      "--ignore-not-found",
      "--wait=false",
    ]);
  }

  name(name: string): ObjectName {
    return { namespace: this.namespace, name };
  }

  /** Declares one of our objects. */
  async declare(kind: ResourceKind, name: string, spec: object): Promise<KubeObject> {
    const { apiVersion } = kubeKindOf(kind);
    return this.client.apply(kubeKindOf(kind), {
      apiVersion,
      kind,
      metadata: this.name(name),
      spec,
    });
  }

  /** Declares an Agent whose pods no node takes, so that they cost nothing. */
  async agent(name: string, spec: object = {}): Promise<KubeObject> {
    const base = { image: "localhost/none:dev", nodeSelector: { "svc-e2e": "no-node" } };
    return this.declare("Agent", name, { ...base, ...spec });
  }

  /** Declares a Provider of GitHub with a token of its Secret. */
  async provider(name: string, spec: object = {}): Promise<KubeObject> {
    const auth = { type: "token", secretRef: `${name}-secret` };
    return this.declare("Provider", name, { type: "github", auth, ...spec });
  }

  async secret(name: string, value: string): Promise<KubeObject> {
    return this.client.apply(CORE.secret, {
      apiVersion: "v1",
      kind: "Secret",
      metadata: this.name(name),
      data: { token: Buffer.from(value).toString("base64") },
    });
  }

  async remove(kind: ResourceKind, name: string): Promise<void> {
    await this.client.delete(kubeKindOf(kind), this.name(name));
  }

  async find(kind: KubeKind, name: string): Promise<KubeObject | undefined> {
    return this.client.get(kind, this.name(name));
  }

  async status(agent: string): Promise<AgentStatus> {
    const found = await this.find(kubeKindOf("Agent"), agent);
    return found?.["status"] ?? {};
  }

  async all(kind: KubeKind, labelSelector = "svc.io/agent"): Promise<readonly KubeObject[]> {
    const found: KubeObject[] = [];
    for await (const page of this.client.pages(kind, this.namespace, { labelSelector }))
      found.push(...page.items);
    return found;
  }

  /** All objects that were made for agents, or for one, by `<kind>/<name>`. */
  async generated(agent?: string): Promise<ReadonlyMap<string, KubeObject>> {
    const found = new Map<string, KubeObject>();
    for (const kind of GENERATED)
      for (const object of await this.all(
        kind,
        agent === undefined ? undefined : `svc.io/agent=${agent}`,
      ))
        found.set(`${kind.kind}/${object.metadata.name}`, object);
    return found;
  }

  /** Waits until the status of an Agent, of its newest version, has a reason. */
  async reason(agent: string, reason: string): Promise<AgentStatus> {
    return until(
      async () => {
        const object = await this.find(kubeKindOf("Agent"), agent);
        const status = (object?.["status"] ?? {}) as AgentStatus;
        const isCurrent = status.observedGeneration === object?.metadata.generation;
        return isCurrent && status.reason === reason && status;
      },
      { what: `Agent ${agent} to have the reason ${reason}` },
    );
  }

  /**
   * Resolves with everything that is there when nothing has changed for some time, without what the
   * API server and the cluster's own controllers write.
   */
  async settled(): Promise<Readonly<Record<string, unknown>>> {
    let last = "";
    let unchanged = 0;
    return until(
      async () => {
        const state = await this.state();
        const text = JSON.stringify(state);
        unchanged = text === last ? unchanged + 1 : 0;
        last = text;
        return unchanged >= SETTLED_POLLS && state;
      },
      { what: "the cluster to settle" },
    );
  }

  /** Everything that is declared of the generated objects, and the statuses. */
  async state(): Promise<Readonly<Record<string, unknown>>> {
    const state: Record<string, unknown> = {};
    for (const [
      name,
      { apiVersion, metadata, status: _status, ...fields },
    ] of await this.generated())
      state[name] = {
        apiVersion,
        labels: metadata.labels,
        annotations: without(metadata.annotations, "deployment.kubernetes.io/revision"),
        ownerReferences: metadata.ownerReferences,
        ...declaredOf(fields),
      };
    for (const kind of ["Agent", "Provider"] as const)
      for (const object of await this.all(kubeKindOf(kind), ""))
        state[`${kind}/${object.metadata.name}`] = statusOf(object);
    return Object.fromEntries(Object.entries(state).toSorted(([a], [b]) => (a < b ? -1 : 1)));
  }

  /** `metadata.resourceVersion` of everything that the controller may write. */
  async versions(): Promise<Readonly<Record<string, string>>> {
    const found = [...(await this.generated()).values()];
    for (const kind of ["Agent", "Provider", "GuardBinding"] as const)
      found.push(...(await this.all(kubeKindOf(kind), "")));
    return Object.fromEntries(
      found.map((object) => [
        `${object.kind}/${nameOf(object)}`,
        object.metadata.resourceVersion ?? "",
      ]),
    );
  }
}

/** Readings without a difference after which a cluster counts as settled. */
const SETTLED_POLLS = 8;

/** Jobs are given labels and a selector with a UID. */
function declaredOf({ spec, data, type }: Readonly<Record<string, unknown>>): object {
  const { selector: _selector, ...rest } = (spec ?? {}) as Record<string, unknown>;
  return { data, type, ...(spec === undefined ? {} : { spec: rest }) };
}

function statusOf(object: KubeObject): unknown {
  const { conditions: _conditions, ...status } = (object["status"] ?? {}) as Record<
    string,
    unknown
  >;
  return status;
}

function without(record: object | undefined, name: string): object {
  return Object.fromEntries(Object.entries(record ?? {}).filter(([key]) => key !== name));
}
