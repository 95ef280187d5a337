/** The controller's knowledge of the cluster: copies that informers keep. */
import { type Compiled, compile } from "../compile/compile.ts";
import { secretsOfGateway } from "../compile/gateway-secrets.ts";
import type { KubeClient } from "../kubernetes/client.ts";
import { type Informer, withoutManagedFields } from "../kubernetes/informer.ts";
import { InformerGroup } from "../kubernetes/informer-group.ts";
import { CORE, type KubeKind, type KubeObject } from "../kubernetes/objects.ts";
import type { Clock } from "../platform/clock.ts";
import type { Logger } from "../platform/log.ts";
import type { ObjectStatus } from "../policy/status.ts";
import { plugins } from "../providers/registry.ts";
import { resourceId, type ResourceKind } from "../resources/kinds.ts";
import { parseObject } from "../resources/parse.ts";
import { EMPTY_RESOURCE_SET, type ResourceSet } from "../resources/resource-set.ts";
import { NO_GENERATIONS } from "../sources/load-result.ts";
import { type KubernetesSource, openKubernetes } from "../sources/kubernetes/kubernetes-source.ts";
import { ownInformers } from "../sources/kubernetes/own-informers.ts";
import type { WorkloadTokens } from "../access/workload-tokens.ts";
import type { ControllerConfig } from "./config.ts";
import { withEdits } from "./edited.ts";
import { AGENT_LABEL, FIELD_MANAGER } from "./names.ts";
import type { SecretDigests } from "./secret-digests.ts";

const EMPTY = { resources: EMPTY_RESOURCE_SET, problems: [], generations: NO_GENERATIONS };

/** Kinds that are compiled. */
const OWN_KINDS = ["Agent", "ModelProvider", "Provider", "AccessKey", "GuardBinding"] as const;

/** Kinds of the objects that belong to agents, which are deleted when they are not planned. */
export const CHILD_KINDS = [
  CORE.deployment,
  CORE.job,
  CORE.configMap,
  CORE.secret,
  CORE.networkPolicy,
] as const;

export interface WorldOptions {
  readonly client: KubeClient;
  readonly config: ControllerConfig;
  readonly tokens: WorkloadTokens;
  readonly secrets: SecretDigests;
  readonly clock: Clock;
  readonly log: Logger;
}

export class World {
  readonly #options: WorldOptions;
  readonly #own: readonly Informer[];
  /** Objects that belong to agents, by kind. */
  readonly children: ReadonlyMap<KubeKind, InformerGroup>;
  readonly #pods: InformerGroup;
  /** Roles and RoleBindings of the gateway. */
  readonly access: ReadonlyMap<KubeKind, InformerGroup>;
  readonly #childrenByAgent: ReadonlyMap<KubeKind, AgentIndex>;
  readonly #podsByAgent: AgentIndex;
  readonly #services: InformerGroup;
  readonly #gatewayService: string;
  #source: KubernetesSource | undefined;
  #compiled: Compiled;
  #statuses: ReadonlyMap<string, ObjectStatus> = new Map();

  /** Resolves when all copies are complete. */
  static async open(options: WorldOptions): Promise<World> {
    const world = new World(options);
    const groups = [...world.children.values(), ...world.access.values(), world.#pods];
    for (const informer of world.#own) informer.start();
    for (const group of [...groups, world.#services]) group.start();
    options.secrets.start();
    await options.secrets.synced();
    world.#source = await openKubernetes({
      informers: world.#own,
      secrets: options.secrets,
      secretsOf: secretsOfController,
      parse: (value) => parseObject(value, "controller"),
      clock: options.clock,
    });
    for (const group of [...groups, world.#services]) await group.synced();
    await world.#source.refresh();
    world.compile();
    return world;
  }

  private constructor(options: WorldOptions) {
    const { client, config, clock, log } = options;
    const { namespaces, gateway } = config;
    const base = { client, clock, log };
    const group = (kind: KubeKind, labelSelector: string, keep = withoutManagedFields) =>
      new InformerGroup({ ...base, namespaces, kind, selector: { labelSelector }, keep });
    const managed = `app.kubernetes.io/managed-by=${FIELD_MANAGER}`;
    const [service = "", namespace = ""] = gateway.host.split(".");
    this.#options = options;
    this.#own = ownInformers(OWN_KINDS, { ...base, namespaces });
    this.children = new Map(
      CHILD_KINDS.map((kind) => [kind, group(kind, `${AGENT_LABEL},${managed}`, withEdits)]),
    );
    this.#pods = group(CORE.pod, AGENT_LABEL, statusOnly);
    this.#podsByAgent = indexed(this.#pods);
    this.#childrenByAgent = new Map(
      [...this.children].map(([kind, children]) => [kind, indexed(children)]),
    );
    this.access = new Map(
      [CORE.role, CORE.roleBinding].map((kind) => [kind, group(kind, managed, withEdits)]),
    );
    this.#gatewayService = `${namespace}/${service}`;
    this.#services = new InformerGroup({
      ...base,
      namespaces: [namespace],
      kind: { apiVersion: "v1", kind: "Service", plural: "services" },
      selector: { fieldSelector: `metadata.name=${service}` },
    });
    this.#compiled = this.#compile();
  }

  get resources(): ResourceSet {
    return this.#compiled.resources;
  }

  get compiled(): Compiled {
    return this.#compiled;
  }

  /** The gateway's Service; undefined if there is none. */
  get gateway(): { readonly address: string | undefined } | undefined {
    const service = this.#services.get(this.#gatewayService);
    if (service === undefined) return undefined;
    const { clusterIP = "" } = (service["spec"] ?? {}) as { readonly clusterIP?: string };
    return { address: clusterIP === "" || clusterIP === "None" ? undefined : clusterIP };
  }

  /** Returns the verdict on one of our objects; undefined if it is not known. */
  verdictOn(id: string): ObjectStatus | undefined {
    return this.#statuses.get(id);
  }

  /** Returns one of our objects as it is in the API server. */
  find(kind: ResourceKind, name: string): KubeObject | undefined {
    for (const { objects } of this.#own) {
      const found = objects.get(name);
      if (found?.kind === kind) return found;
    }
    return undefined;
  }

  /** All of our objects, as they are in the API server. */
  *objects(): Generator<KubeObject> {
    for (const { objects } of this.#own) yield* objects.values();
  }

  /** Returns the pods of an agent. @param agent `<namespace>/<name>` */
  podsOf(agent: string): readonly KubeObject[] {
    return [...(this.#podsByAgent.get(agent)?.values() ?? [])];
  }

  /** Returns the objects of an agent, and their kinds. @param agent `<namespace>/<name>` */
  *childrenOf(agent: string): Generator<readonly [KubeKind, KubeObject]> {
    for (const [kind, index] of this.#childrenByAgent)
      for (const object of index.get(agent)?.values() ?? []) yield [kind, object];
  }

  /** Calls listeners when resources, the gateway, or objects of agents have changed. */
  onChange(listeners: {
    /** Resources, Secrets or the gateway's Service. */
    readonly inputs: () => void;
    /** An object of an agent, or one of its pods. @param agent `<namespace>/<name>` */
    readonly child: (agent: string) => void;
    /** @param namespace of a Role or RoleBinding */
    readonly access: (namespace: string) => void;
    /** One of our objects was written, if only its status. */
    readonly own: (object: KubeObject) => void;
  }): void {
    this.#source?.onChange(() => listeners.inputs());
    this.#services.onChange(() => listeners.inputs());
    for (const group of [...this.children.values(), this.#pods])
      group.onChange((_name, object, before) => {
        const agent = agentOf(object ?? before);
        if (agent !== undefined) listeners.child(agent);
      });
    for (const group of this.access.values())
      group.onChange((name) => listeners.access(name.split("/")[0] ?? ""));
    for (const informer of this.#own)
      informer.onChange((_name, object) => {
        if (object !== undefined) listeners.own(object);
      });
  }

  /** Compiles the newest resources. */
  compile(): void {
    this.#compiled = this.#compile();
    this.#statuses = new Map(this.#compiled.statuses.map((status) => [resourceId(status), status]));
  }

  async close(): Promise<void> {
    await this.#source?.close();
    const groups = [...this.children.values(), ...this.access.values(), this.#pods, this.#services];
    await Promise.all([
      ...groups.map(async (group) => group.stop()),
      ...this.#own.map(async (informer) => informer.stop()),
      this.#options.secrets.stop(),
    ]);
  }

  #compile(): Compiled {
    const { tokens, clock, config } = this.#options;
    return compile(this.#source?.current() ?? EMPTY, {
      env: {},
      now: clock.now(),
      tokenHashesOf: (namespace, name) => tokens.hashesOf(namespace, name),
      // Whether there is one is the gateway's to know.
      mockEndpoint: { host: "127.0.0.1", port: 1, tls: false, basePath: "/v1" },
      guardEndpoint: config.guardEndpoint,
      service: (type) => plugins.get(type),
    });
  }
}

/** Objects by the agent they belong to, `<namespace>/<name>`, and then by their own name. */
type AgentIndex = ReadonlyMap<string, ReadonlyMap<string, KubeObject>>;

/** Follows a group that is not started yet. */
function indexed(group: InformerGroup): AgentIndex {
  const index = new Map<string, Map<string, KubeObject>>();
  const remove = (agent: string, name: string): void => {
    const known = index.get(agent);
    known?.delete(name);
    if (known?.size === 0) index.delete(agent);
  };
  group.onChange((name, object, before) => {
    const was = agentOf(before);
    const is = agentOf(object);
    if (was !== undefined) remove(was, name);
    if (is === undefined || object === undefined) return;
    const known = index.get(is) ?? new Map<string, KubeObject>();
    index.set(is, known.set(name, object));
  });
  return index;
}

/** Returns the agent, `<namespace>/<name>`, that the label of an object names. */
function agentOf(object: KubeObject | undefined): string | undefined {
  const { namespace = "", labels } = object?.metadata ?? { name: "" };
  const agent = labels?.[AGENT_LABEL];
  return agent === undefined ? undefined : `${namespace}/${agent}`;
}

/** The controller needs to know which values exist, and when they change. */
function secretsOfController(resources: ResourceSet): ReadonlySet<string> {
  return new Set([
    ...secretsOfGateway(resources),
    ...[...resources.providers.values()].flatMap(({ namespace, spec }) =>
      spec.auth === undefined ? [] : [`${namespace}/${spec.auth.secretRef}`],
    ),
  ]);
}

/** Keeps the parts of a pod that are read: its names, and the states of its containers. */
function statusOnly(pod: KubeObject): KubeObject {
  const { name, namespace, resourceVersion, labels, annotations, deletionTimestamp } = pod.metadata;
  const { initContainerStatuses, containerStatuses } = (pod["status"] ?? {}) as Record<
    string,
    unknown
  >;
  return {
    apiVersion: pod.apiVersion,
    kind: pod.kind,
    metadata: {
      name,
      ...(namespace === undefined ? {} : { namespace }),
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
      ...(labels === undefined ? {} : { labels }),
      ...(annotations === undefined ? {} : { annotations }),
      ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
    },
    status: { initContainerStatuses, containerStatuses },
  };
}
