/**
 * Brings the objects of one Agent to their plan. Level-based: it compares what is planned with what
 * is there, so that it may run at any time, any number of times, and by two processes at once.
 */
import type { KubeClient } from "../kubernetes/client.ts";
import { isNotFound } from "../kubernetes/connection.ts";
import { CORE, type KubeKind, type KubeObject, nameOf } from "../kubernetes/objects.ts";
import { resourceId } from "../resources/kinds.ts";
import { agentState, type EndedRun } from "./agent-status.ts";
import type { Applier } from "./apply.ts";
import { namesOf, PROVIDERS_ANNOTATION, RUN_ANNOTATION } from "./names.ts";
import { ownerOf, type Plan, planAgent, type PlannedObject, type Surroundings } from "./plan.ts";
import type { StatusWriter } from "./status-writer.ts";
import { makeWebhookToken, webhookTokenOf, webhookUrl } from "./webhooks.ts";
import type { World } from "./world.ts";

export interface AgentReconcilerOptions {
  readonly world: World;
  readonly client: KubeClient;
  readonly applier: Applier;
  readonly statuses: StatusWriter;
  /** Returns what plans depend on besides the resources, at this time. */
  readonly surroundings: () => Surroundings;
  /** Address of the installation from outside. */
  readonly baseUrl: string;
}

export class AgentReconciler {
  readonly #options: AgentReconcilerOptions;

  constructor(options: AgentReconcilerOptions) {
    this.#options = options;
  }

  /**
   * @param key `<namespace>/<name>`
   * @throws ApiError
   */
  async reconcile(key: string): Promise<void> {
    const { world } = this.#options;
    const object = world.find("Agent", key);
    // What an agent owns is deleted with it, by the garbage collector.
    if (object === undefined || object.metadata.deletionTimestamp !== undefined) return;
    const verdict = world.verdictOn(resourceId({ kind: "Agent", ...split(key) }));
    if (verdict === undefined) return;
    const agent = world.resources.agents.get(key);
    const plan =
      agent === undefined
        ? undefined
        : planAgent(agent, verdict, world.compiled, this.#options.surroundings());
    if (plan !== undefined) await this.#bringAbout(key, plan, endedRun(object));
    const token =
      agent !== undefined && plan?.hasWebhook === true
        ? await this.#webhook(key, object)
        : undefined;
    await this.#writeStatus(key, object, plan, token);
  }

  /** Returns the plan of an agent, for the detection of changes; undefined if it has none. */
  planOf(key: string): Plan | undefined {
    const { world } = this.#options;
    const agent = world.resources.agents.get(key);
    const verdict = world.verdictOn(resourceId({ kind: "Agent", ...split(key) }));
    return agent === undefined || verdict === undefined
      ? undefined
      : planAgent(agent, verdict, world.compiled, this.#options.surroundings());
  }

  async #bringAbout(key: string, plan: Plan, ended: EndedRun | undefined): Promise<void> {
    const existing = this.#workload(key);
    // Nothing half made: a policy that became stricter still reaches a workload that runs.
    if (plan.blocked !== undefined && existing === undefined) return;
    for (const planned of plan.objects) await this.#apply(planned);
    await this.#hastenPods(key, plan);
    if (plan.blocked !== undefined) return;
    if (plan.workload !== undefined) {
      if (plan.variant === "task") await this.#runTask(key, plan, plan.workload, ended);
      else await this.#apply(plan.workload);
    }
    await this.#prune(key, plan);
  }

  /** Changes the pods whose Providers' file has changed, so that their kubelet looks at it now. */
  async #hastenPods(key: string, { providersHash }: Plan): Promise<void> {
    const { world, client } = this.#options;
    const { namespace, name } = split(key);
    for (const pod of world.podsOf(namespace, name)) {
      const { annotations, deletionTimestamp } = pod.metadata;
      if (annotations?.[PROVIDERS_ANNOTATION] === providersHash) continue;
      if (deletionTimestamp !== undefined) continue;
      await client
        .merge(CORE.pod, namesIn(pod), {
          metadata: { annotations: { [PROVIDERS_ANNOTATION]: providersHash } },
        })
        .catch((error: unknown) => {
          if (!isNotFound(error)) throw error;
        });
    }
  }

  /**
   * A Job cannot be changed: what concerns the task makes another run, and everything else, such as
   * a newer sidecar, leaves a run under way as it is.
   */
  async #runTask(
    key: string,
    plan: Plan,
    workload: PlannedObject,
    ended: EndedRun | undefined,
  ): Promise<void> {
    const job = this.#child(CORE.job, key, workload.object.metadata.name);
    if (job === undefined) {
      if (ended?.run !== plan.run) await this.#apply(workload);
      return;
    }
    const isSame = job.metadata.annotations?.[RUN_ANNOTATION] === plan.run;
    if (isSame || job.metadata.deletionTimestamp !== undefined) return;
    await this.#options.client.delete(CORE.job, namesIn(job), job.metadata.uid);
  }

  /** Deletes what this controller made for the agent, and what is not planned any more. */
  async #prune(key: string, plan: Plan): Promise<void> {
    const { namespace, name } = split(key);
    const planned = [...plan.objects, ...(plan.workload === undefined ? [] : [plan.workload])];
    const kept = new Set(planned.map(({ kind, object }) => `${kind.kind}/${nameOf(object)}`));
    if (plan.hasWebhook) kept.add(`Secret/${namespace}/${namesOf(name).webhook}`);
    const uid = this.#options.world.find("Agent", key)?.metadata.uid;
    for (const [kind, group] of this.#options.world.children) {
      for (const object of group) {
        const isOwn = object.metadata.ownerReferences?.some((owner) => owner.uid === uid) ?? false;
        if (!isOwn || kept.has(`${kind.kind}/${nameOf(object)}`)) continue;
        if (object.metadata.deletionTimestamp !== undefined) continue;
        await this.#options.client.delete(kind, namesIn(object), object.metadata.uid);
      }
    }
  }

  async #apply(planned: PlannedObject): Promise<void> {
    const { kind, object } = planned;
    const found = this.#options.world.children.get(kind)?.get(nameOf(object));
    await this.#options.applier.apply(planned, found);
  }

  /** @returns the token, if it exists already */
  async #webhook(key: string, object: KubeObject): Promise<string | undefined> {
    const { world, client } = this.#options;
    const agent = world.resources.agents.get(key);
    if (agent === undefined) return undefined;
    const found = this.#child(CORE.secret, key, namesOf(agent.name).webhook);
    const token = webhookTokenOf(found);
    if (token === undefined) {
      const owner = ownerOf(agent, { uidOf: () => object.metadata.uid ?? "" });
      await makeWebhookToken(client, agent, owner, found);
    }
    return token;
  }

  async #writeStatus(
    key: string,
    object: KubeObject,
    plan: Plan | undefined,
    token: string | undefined,
  ): Promise<void> {
    const { world, statuses, baseUrl } = this.#options;
    const { namespace, name } = split(key);
    const verdict = world.verdictOn(resourceId({ kind: "Agent", namespace, name }));
    if (verdict === undefined) return;
    const observed = { workload: this.#workload(key), pods: world.podsOf(namespace, name) };
    const state = agentState(verdict, plan, observed, endedRun(object));
    const agent = world.resources.agents.get(key);
    await statuses.write(object, {
      ready: state.ready,
      reason: state.reason,
      message: state.message,
      fields: {
        phase: state.phase,
        completedRun: state.completedRun,
        webhookUrl:
          token === undefined || agent === undefined
            ? undefined
            : webhookUrl(baseUrl, agent, token),
      },
    });
  }

  #workload(key: string): KubeObject | undefined {
    const { workload } = namesOf(split(key).name);
    return this.#child(CORE.deployment, key, workload) ?? this.#child(CORE.job, key, workload);
  }

  /** Returns an object of an agent that this controller has applied or created. */
  #child(kind: KubeKind, key: string, name: string): KubeObject | undefined {
    return this.#options.world.children.get(kind)?.get(`${split(key).namespace}/${name}`);
  }
}

function endedRun({ status }: KubeObject): EndedRun | undefined {
  const { completedRun, phase } = (status ?? {}) as { completedRun?: string; phase?: string };
  return completedRun === undefined ? undefined : { run: completedRun, phase: phase ?? "" };
}

function split(key: string): { readonly namespace: string; readonly name: string } {
  const [namespace = "", name = ""] = key.split("/");
  return { namespace, name };
}

function namesIn({ metadata }: KubeObject): { readonly namespace: string; readonly name: string } {
  return { namespace: metadata.namespace ?? "", name: metadata.name };
}
