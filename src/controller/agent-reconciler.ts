/**
 * Brings the objects of one Agent to their plan. Level-based: it compares what is planned with what
 * is there, so that it may run at any time, any number of times, and by two processes at once.
 */
import type { KubeClient } from "../kubernetes/client.ts";
import { ApiError, isNotFound } from "../kubernetes/connection.ts";
import { CORE, type KubeKind, type KubeObject, nameOf } from "../kubernetes/objects.ts";
import type { ObjectStatus } from "../policy/status.ts";
import { type AgentState, agentState, type EndedRun } from "./agent-status.ts";
import { type Applier, NameTakenError } from "./apply.ts";
import { namesOf, PROVIDERS_ANNOTATION } from "./names.ts";
import type { Plan, PlannedObject } from "./plan.ts";
import type { Judged, Plans } from "./plans.ts";
import type { StatusWriter } from "./status-writer.ts";
import { taskStep } from "./task.ts";
import { makeWebhookToken, webhookTokenOf, webhookUrl } from "./webhooks.ts";
import type { World } from "./world.ts";

export interface AgentReconcilerOptions {
  readonly world: Pick<World, "find" | "children" | "childrenOf" | "podsOf">;
  readonly plans: Pick<Plans, "get">;
  readonly client: KubeClient;
  readonly applier: Applier;
  readonly statuses: StatusWriter;
  /** Address of the installation from outside. */
  readonly baseUrl: string;
}

/** An Agent whose reconciliation is under way. */
interface Subject {
  /** `<namespace>/<name>` */
  readonly key: string;
  readonly namespace: string;
  readonly name: string;
  readonly object: KubeObject;
  readonly plan: Plan | undefined;
  readonly verdict: ObjectStatus;
  readonly ended: EndedRun | undefined;
}

export class AgentReconciler {
  readonly #options: AgentReconcilerOptions;

  constructor(options: AgentReconcilerOptions) {
    this.#options = options;
  }

  /**
   * @param key `<namespace>/<name>`
   * @throws ApiError, NameTakenError
   */
  async reconcile(key: string): Promise<void> {
    const { world, plans } = this.#options;
    const object = world.find("Agent", key);
    // The garbage collector deletes the objects of a deleted Agent.
    if (object === undefined || object.metadata.deletionTimestamp !== undefined) return;
    const judged = plans.get(key);
    // The object was made anew, and its plan follows.
    if (judged === undefined || judged.uid !== object.metadata.uid) return;
    const subject = subjectOf(key, object, judged);
    let refused: Refused | undefined;
    try {
      await this.#bringAbout(subject);
    } catch (error) {
      refused = refusalOf(error);
      if (refused === undefined) throw error;
    }
    const token = await this.#webhook(subject);
    await this.#writeStatus(subject, token, refused);
    // Nothing tells when the reason is gone.
    if (refused !== undefined) throw refused.error;
  }

  async #bringAbout(subject: Subject): Promise<void> {
    const { key, plan } = subject;
    if (plan === undefined) return;
    if (plan.blocked !== undefined) {
      // Nothing half made: but a policy that became stricter still reaches what runs.
      const isRunning = this.#workload(subject) !== undefined;
      for (const planned of plan.objects)
        if (isRunning || this.#found(planned) !== undefined) await this.#apply(planned);
      await this.#hastenPods(key, plan);
      return;
    }
    for (const planned of plan.objects) await this.#apply(planned);
    await this.#hastenPods(key, plan);
    if (plan.workload !== undefined) {
      if (plan.variant === "task") await this.#runTask(subject, plan, plan.workload);
      else await this.#apply(plan.workload);
    }
    await this.#prune(key, plan);
  }

  /** Changes the pods whose Providers' file has changed, so that their kubelet looks at it now. */
  async #hastenPods(key: string, { providersHash }: Plan): Promise<void> {
    const { world, client } = this.#options;
    for (const pod of world.podsOf(key)) {
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

  async #runTask({ ended }: Subject, plan: Plan, workload: PlannedObject): Promise<void> {
    const { client } = this.#options;
    const job = this.#found(workload);
    const step = taskStep(plan, job, ended);
    if (step.kind === "create") await this.#apply(workload);
    else if (job === undefined) return;
    else if (step.kind === "delete") await client.delete(CORE.job, namesIn(job), job.metadata.uid);
    else if (step.kind === "patch")
      await client.merge(CORE.job, namesIn(job), {
        metadata: { uid: job.metadata.uid },
        ...step.patch,
      });
  }

  /** Deletes what this controller made for the agent, and what is not planned any more. */
  async #prune(key: string, plan: Plan): Promise<void> {
    const { namespace, name } = split(key);
    const planned = [...plan.objects, ...(plan.workload === undefined ? [] : [plan.workload])];
    const kept = new Set(planned.map(({ kind, object }) => `${kind.kind}/${nameOf(object)}`));
    if (plan.hasWebhook) kept.add(`Secret/${namespace}/${namesOf(name).webhook}`);
    for (const [kind, object] of this.#options.world.childrenOf(key)) {
      const { uid, ownerReferences = [], deletionTimestamp } = object.metadata;
      const isOwn = ownerReferences.some((owner) => owner.uid === plan.uid);
      if (!isOwn || deletionTimestamp !== undefined) continue;
      if (!kept.has(`${kind.kind}/${nameOf(object)}`))
        await this.#options.client.delete(kind, namesIn(object), uid);
    }
  }

  async #apply(planned: PlannedObject): Promise<void> {
    await this.#options.applier.apply(planned, this.#found(planned));
  }

  /** @returns the token, if it exists already */
  async #webhook({ namespace, name, plan }: Subject): Promise<string | undefined> {
    if (plan?.hasWebhook !== true) return undefined;
    const found = this.#child(CORE.secret, namespace, namesOf(name).webhook);
    const token = webhookTokenOf(found);
    if (token === undefined)
      await makeWebhookToken(this.#options.client, { namespace, name }, plan.owner, found);
    return token;
  }

  async #writeStatus(
    subject: Subject,
    token: string | undefined,
    refused: Refused | undefined,
  ): Promise<void> {
    const { statuses, baseUrl, world } = this.#options;
    const { key, object, plan, verdict, ended } = subject;
    const observed = { workload: this.#workload(subject), pods: world.podsOf(key) };
    const state: AgentState = {
      ...agentState(verdict, plan, observed, ended),
      ...(refused === undefined
        ? {}
        : { ready: false, reason: refused.reason, message: refused.error.message }),
    };
    await statuses.write(object, {
      ready: state.ready,
      reason: state.reason,
      message: state.message,
      observedGeneration: verdict.observedGeneration,
      fields: {
        phase: state.phase,
        completedRun: state.completedRun,
        webhookUrl: token === undefined ? undefined : webhookUrl(baseUrl, subject, token),
      },
    });
  }

  #workload({ namespace, name }: Subject): KubeObject | undefined {
    const { workload } = namesOf(name);
    return (
      this.#child(CORE.deployment, namespace, workload) ??
      this.#child(CORE.job, namespace, workload)
    );
  }

  #found({ kind, object }: PlannedObject): KubeObject | undefined {
    return this.#child(kind, object.metadata.namespace ?? "", object.metadata.name);
  }

  /** Returns an object of an agent that this controller has applied or created. */
  #child(kind: KubeKind, namespace: string, name: string): KubeObject | undefined {
    return this.#options.world.children.get(kind)?.get(`${namespace}/${name}`);
  }
}

/** A failure that lasts until somebody changes something, and that the status tells. */
interface Refused {
  readonly reason: "NameTaken" | "ApplyRefused";
  readonly error: Error;
}

/** The API server refuses an object itself with these; others pass by themselves. */
const REFUSALS: ReadonlySet<number> = new Set([400, 403, 422]);

function refusalOf(error: unknown): Refused | undefined {
  if (error instanceof NameTakenError) return { reason: "NameTaken", error };
  return error instanceof ApiError && REFUSALS.has(error.status)
    ? { reason: "ApplyRefused", error }
    : undefined;
}

function subjectOf(key: string, object: KubeObject, { plan, verdict }: Judged): Subject {
  const { completedRun, phase } = (object["status"] ?? {}) as {
    readonly completedRun?: string;
    readonly phase?: string;
  };
  const ended = completedRun === undefined ? undefined : { run: completedRun, phase: phase ?? "" };
  return { key, ...split(key), object, plan, verdict, ended };
}

function split(key: string): { readonly namespace: string; readonly name: string } {
  const [namespace = "", name = ""] = key.split("/");
  return { namespace, name };
}

function namesIn({ metadata }: KubeObject): { readonly namespace: string; readonly name: string } {
  return { namespace: metadata.namespace ?? "", name: metadata.name };
}
