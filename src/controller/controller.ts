/**
 * The controller: gathers what the cluster has, decides what it should have, and applies the
 * difference. Work is a key of a queue, so that many changes of one object are one reconciliation.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import { WorkloadTokens } from "../access/workload-tokens.ts";
import { KubeClient } from "../kubernetes/client.ts";
import type { ApiConnection } from "../kubernetes/connection.ts";
import { EventRecorder } from "../kubernetes/events.ts";
import { Informer } from "../kubernetes/informer.ts";
import { CORE, type KubeObject, nameOf } from "../kubernetes/objects.ts";
import type { Clock } from "../platform/clock.ts";
import type { Logger } from "../platform/log.ts";
import type { ObjectStatus } from "../policy/status.ts";
import { isResourceKind, resourceId } from "../resources/kinds.ts";
import { workloadKeysOf } from "../sources/kubernetes/workload-keys.ts";
import { AgentReconciler } from "./agent-reconciler.ts";
import { Applier } from "./apply.ts";
import type { ControllerConfig } from "./config.ts";
import { GATEWAY_SECRETS, gatewayAccess, gatewayNamespaces } from "./gateway-access.ts";
import { makeInstallation } from "./installation.ts";
import { FIELD_MANAGER } from "./names.ts";
import type { Surroundings } from "./plan.ts";
import { Plans } from "./plans.ts";
import { WorkQueue } from "./queue.ts";
import { SecretDigests } from "./secret-digests.ts";
import { StatusWriter } from "./status-writer.ts";
import { World } from "./world.ts";

export interface ControllerOptions {
  readonly config: ControllerConfig;
  readonly connection: ApiConnection;
  /** Namespace of the installation. */
  readonly namespace: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly registry: Registry;
}

/** Keys that are worked on at once. */
const PARALLEL = 8;
/** Kinds other than Agent whose status is the controller's. */
const JUDGED = new Set(["Provider", "GuardBinding"]);

export class Controller {
  readonly #options: ControllerOptions;
  readonly #client: KubeClient;
  readonly #workloadKey: Informer;
  readonly #queue: WorkQueue;
  readonly #durations: Histogram;
  #world: World | undefined;
  readonly #plans = new Plans();
  #surroundings: (() => Surroundings) | undefined;
  #agents: AgentReconciler | undefined;
  #statuses: StatusWriter | undefined;
  #applier: Applier | undefined;
  /** Verdicts on objects that have nothing but a status: equal ones need no work. */
  #judged: ReadonlyMap<string, string> = new Map();
  #namespaces: ReadonlySet<string> = new Set();

  constructor(options: ControllerOptions) {
    const { connection, clock, log, registry, config, namespace } = options;
    this.#options = options;
    this.#client = new KubeClient(connection, FIELD_MANAGER);
    this.#workloadKey = new Informer({
      client: this.#client,
      kind: CORE.secret,
      namespace,
      selector: { fieldSelector: `metadata.name=${config.workloadKeySecret}` },
      clock,
      log,
    });
    this.#durations = new Histogram({
      name: "svc_controller_reconcile_seconds",
      help: "Duration of a reconciliation.",
      labelNames: ["kind"],
      registers: [registry],
    });
    const failures = new Counter({
      name: "svc_controller_reconcile_failures_total",
      help: "Reconciliations that failed, and are tried again.",
      labelNames: ["kind"],
      registers: [registry],
    });
    this.#queue = new WorkQueue({
      parallel: PARALLEL,
      clock,
      work: async (key) => this.#work(key),
      onFailure: (key, error, retryMs) => {
        failures.inc({ kind: key.split("/")[0] ?? "" });
        log.warn({ key, error: messageOf(error), retryMs: Math.round(retryMs) }, "trying again");
      },
    });
    const requests = new Counter({
      name: "svc_controller_api_requests_total",
      help: "Requests to the API server, by method and status; 0 where it did not answer.",
      labelNames: ["method", "status"],
      registers: [registry],
    });
    connection.onAnswer = ({ method, status }) => requests.inc({ method, status: `${status}` });
    const depth: Gauge = new Gauge({
      name: "svc_controller_queue_depth",
      help: "Objects that wait for their reconciliation.",
      registers: [registry],
      collect: () => depth.set(this.#queue.depth),
    });
  }

  /** Returns whether the copies are complete. */
  get isReady(): boolean {
    return this.#world !== undefined;
  }

  /** Begins to watch. Resolves when the copies are complete, which needs the workload key. */
  async open(): Promise<void> {
    const { config, clock, log } = this.#options;
    const { gateway, baseUrl, namespaces } = config;
    const base = { client: this.#client, clock, log };
    const keys = await this.#keys();
    const tokens = new WorkloadTokens(...keys);
    const secrets = new SecretDigests({ ...base, namespaces }, this.#digestKey());
    const world = await World.open({ ...base, config, tokens, secrets });
    const dnsServers = config.dns.servers.length > 0 ? config.dns.servers : systemDnsServers();
    this.#surroundings = () => ({
      config,
      dnsServers,
      gateway: world.gateway,
      tokenOf: (namespace, name) => tokens.tokenOf(namespace, name),
      uidOf: (agent) => world.find("Agent", `${agent.namespace}/${agent.name}`)?.metadata.uid ?? "",
      digestOf: (namespace, ref) => secrets.digestOf(namespace, ref),
    });
    this.#applier = new Applier(this.#client);
    this.#statuses = new StatusWriter(
      this.#client,
      new EventRecorder(this.#client, FIELD_MANAGER, clock),
      clock,
    );
    this.#agents = new AgentReconciler({
      world,
      plans: this.#plans,
      client: this.#client,
      applier: this.#applier,
      statuses: this.#statuses,
      baseUrl: baseUrl === "" ? `http://${gateway.host}:${gateway.port}` : baseUrl,
    });
    this.#workloadKey.onChange((_name, object) => {
      const next = object === undefined ? undefined : workloadKeysOf(object);
      if (next === undefined) this.#queue.add("Installation");
      else if (tokens.setKeys(...next)) this.#onInputs();
    });
    this.#world = world;
    world.onChange({
      inputs: () => this.#onInputs(),
      child: (agent) => this.#queue.add(`Agent/${agent}`),
      access: (namespace) => this.#queue.add(`Access/${namespace}`),
      own: (object) => this.#onOwn(object),
    });
    this.#onInputs();
    // Roles of an earlier process that nobody needs any more.
    for (const group of world.access.values())
      for (const object of group) this.#queue.add(`Access/${object.metadata.namespace ?? ""}`);
  }

  /** Begins to write: this process leads. */
  lead(): void {
    this.#queue.add("Installation");
    this.#queue.start();
  }

  async close(): Promise<void> {
    await this.#queue.stop();
    await Promise.all([this.#world?.close(), this.#workloadKey.stop()]);
  }

  /** Resolves when the Secret exists: the leader makes it. */
  async #keys(): Promise<readonly Uint8Array[]> {
    return new Promise((resolve) => {
      this.#workloadKey.onChange((_name, object) => {
        const keys = object === undefined ? undefined : workloadKeysOf(object);
        if (keys !== undefined) resolve(keys);
      });
      this.#workloadKey.start();
    });
  }

  /**
   * The key of Secrets' digests: the same for every replica, and through a rotation of the workload
   * key, which would otherwise roll all pods a second time when a replica restarts.
   */
  #digestKey(): Uint8Array {
    const [secret] = this.#workloadKey.objects.values();
    return createHash("sha256").update(`digests\n${secret?.metadata.uid}`).digest();
  }

  async #install(): Promise<void> {
    const { namespace, config } = this.#options;
    const { workloadKeySecret } = config;
    await makeInstallation({ client: this.#client, namespace, workloadKeySecret });
  }

  /** Resources, Secrets or the gateway have changed. A failure leaves the last plans in force. */
  #onInputs(): void {
    try {
      this.#replan();
    } catch (error) {
      this.#options.log.error({ error }, "the resources could not be compiled");
    }
  }

  /** Makes objects due whose plan or verdict has changed. */
  #replan(): void {
    const world = this.#world;
    if (world === undefined || this.#surroundings === undefined) return;
    world.compile();
    const agents = new Map<string, { object: KubeObject; verdict: ObjectStatus }>();
    const judged = new Map<string, string>();
    const namespaces = gatewayNamespaces(world.resources);
    for (const object of world.objects()) {
      const name = nameOf(object);
      const key = `${object.kind}/${name}`;
      const verdict = world.verdictOn(key);
      if (verdict === undefined) continue;
      if (object.kind === "Agent") agents.set(name, { object, verdict });
      if (!JUDGED.has(object.kind)) continue;
      const text = JSON.stringify([object.metadata.uid, verdict]);
      judged.set(key, text);
      if (this.#judged.get(key) !== text) this.#queue.add(key);
    }
    this.#judged = judged;
    for (const name of this.#plans.update(agents, world.compiled, this.#surroundings()))
      this.#queue.add(`Agent/${name}`);
    for (const namespace of new Set([...this.#namespaces, ...namespaces]))
      this.#queue.add(`Access/${namespace}`);
    this.#namespaces = namespaces;
  }

  /** Somebody wrote one of our objects, perhaps its status, which is put right. */
  #onOwn(object: KubeObject): void {
    if (object.kind === "Agent" || JUDGED.has(object.kind))
      this.#queue.add(`${object.kind}/${nameOf(object)}`);
  }

  async #work(key: string): Promise<void> {
    const [kind = "", ...rest] = key.split("/");
    const end = this.#durations.startTimer({ kind });
    try {
      if (kind === "Installation") await this.#install();
      else if (kind === "Access") await this.#giveAccess(rest[0] ?? "");
      else if (kind === "Agent") await this.#agents?.reconcile(rest.join("/"));
      else await this.#judge(key);
    } finally {
      end();
    }
  }

  /** Writes the status of an object that has nothing but a status. */
  async #judge(key: string): Promise<void> {
    const [kind = "", namespace = "", name = ""] = key.split("/");
    if (!isResourceKind(kind)) return;
    const object = this.#world?.find(kind, `${namespace}/${name}`);
    const verdict = this.#world?.verdictOn(resourceId({ kind, namespace, name }));
    if (object === undefined || verdict === undefined) return;
    await this.#statuses?.write(object, verdict);
  }

  async #giveAccess(namespace: string): Promise<void> {
    const world = this.#world;
    if (world === undefined) return;
    const planned = gatewayAccess(namespace, world.resources, this.#options.config);
    for (const one of planned)
      await this.#applier?.apply(one, world.access.get(one.kind)?.get(nameOf(one.object)));
    if (planned.length > 0) return;
    for (const [kind, group] of world.access) {
      for (const object of group)
        if (nameOf(object) === `${namespace}/${GATEWAY_SECRETS}`)
          await this.#client.delete(
            kind,
            { namespace, name: object.metadata.name },
            object.metadata.uid,
          );
    }
  }
}

/** Returns the servers of /etc/resolv.conf: in a pod, those of the cluster. */
function systemDnsServers(): readonly string[] {
  const text = readFileSync("/etc/resolv.conf", "utf8");
  return [...text.matchAll(/^nameserver\s+(\S+)/gm)].map((match) => match[1] as string);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
