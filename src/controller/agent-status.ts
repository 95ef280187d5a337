/** The status of an Agent, from its plan and from what its pods do. Pure. */
import type { KubeObject } from "../kubernetes/objects.ts";
import type { ObjectStatus, Reason } from "../policy/status.ts";
import type { Plan } from "./plan.ts";

export interface ObservedWorkload {
  /** Deployment or Job; undefined if there is none. */
  readonly workload: KubeObject | undefined;
  readonly pods: readonly KubeObject[];
}

/** A task's run that has ended. */
export interface EndedRun {
  readonly run: string;
  readonly phase: string;
}

export interface AgentState {
  readonly ready: boolean;
  readonly reason: Reason;
  readonly message: string;
  readonly phase: "Pending" | "Running" | "Complete" | "Failed" | undefined;
  /** Hash of a task's run that has ended. */
  readonly completedRun: string | undefined;
}

/** Longest part of somebody else's message that is shown. */
const MAX_TOLD = 200;

interface DeploymentStatus {
  readonly observedGeneration?: number;
  readonly updatedReplicas?: number;
  readonly readyReplicas?: number;
  readonly replicas?: number;
  readonly conditions?: readonly {
    readonly type: string;
    readonly status: string;
    readonly message?: string;
  }[];
}

interface JobStatus {
  readonly active?: number;
  readonly ready?: number;
  readonly conditions?: readonly {
    readonly type: string;
    readonly status: string;
    readonly message?: string;
  }[];
}

/** Reasons for which an Agent counts as failed, and not as waiting. */
const FAILED: ReadonlySet<Reason> = new Set<Reason>([
  "RunsAsRoot",
  "ReservedUser",
  "ReservedVolume",
  "InvalidSpec",
  "NotSupportedYet",
  "TaskFailed",
]);

/**
 * @param verdict on the Agent's references, from the compiler
 * @param ended the task's run that has ended before, whose Job may be deleted since
 */
export function agentState(
  verdict: Pick<ObjectStatus, "ready" | "reason" | "message">,
  plan: Plan | undefined,
  observed: ObservedWorkload,
  ended: EndedRun | undefined,
): AgentState {
  const { reason, message } = plan?.blocked ?? verdict;
  const refused = plan === undefined || plan.blocked !== undefined || !verdict.ready;
  if (plan === undefined || plan.variant === "template")
    return {
      ready: !refused,
      reason,
      message,
      phase: FAILED.has(reason) ? "Failed" : undefined,
      completedRun: undefined,
    };
  const running = plan.variant === "task" ? ofJob(plan, observed, ended) : ofDeployment(observed);
  if (FAILED.has(reason)) return { ...running, ready: false, reason, message, phase: "Failed" };
  if (refused) return { ...running, ready: false, reason, message };
  if (!running.ready) return running;
  return { ...running, reason, message: message === "" ? running.message : message };
}

const PENDING = { ready: false, reason: "PodsNotReady", phase: "Pending" } as const;

function ofDeployment({ workload, pods }: ObservedWorkload): AgentState {
  const completedRun = undefined;
  if (workload === undefined)
    return { ...PENDING, message: "its Deployment is being made", completedRun };
  const wanted = ((workload["spec"] ?? {}) as { replicas?: number }).replicas ?? 1;
  const status = (workload["status"] ?? {}) as DeploymentStatus;
  const { updatedReplicas = 0, readyReplicas = 0, replicas = 0 } = status;
  const isCurrent = status.observedGeneration === workload.metadata.generation;
  if (isCurrent && updatedReplicas === wanted && readyReplicas >= wanted && replicas === wanted)
    return { ready: true, reason: "Ready", message: "", phase: "Running", completedRun };
  const failure = status.conditions?.find(
    ({ type, status: holds }) => type === "ReplicaFailure" && holds === "True",
  );
  const message = [
    `${readyReplicas} of ${wanted} pods are ready`,
    // A quota, or the Pod Security Standard of the namespace.
    ...(failure?.message === undefined ? [] : [failure.message.slice(0, MAX_TOLD)]),
    ...waitingReasons(pods),
  ];
  return {
    ...PENDING,
    phase: readyReplicas > 0 ? "Running" : "Pending",
    message: message.join("; "),
    completedRun,
  };
}

function ofJob(
  { run }: Plan,
  { workload, pods }: ObservedWorkload,
  ended: EndedRun | undefined,
): AgentState {
  const status = (workload?.["status"] ?? {}) as JobStatus;
  const condition = (type: string) =>
    status.conditions?.find((found) => found.type === type && found.status === "True");
  const failed = condition("Failed");
  const past = workload === undefined && ended?.run === run ? ended?.phase : undefined;
  if (failed !== undefined || past === "Failed")
    return {
      ready: false,
      reason: "TaskFailed",
      message: `the task has failed: ${failed?.message ?? "its Job is deleted"}`,
      phase: "Failed",
      completedRun: run,
    };
  if (condition("Complete") !== undefined || past === "Complete")
    return {
      ready: true,
      reason: "Ready",
      message: "the task has completed",
      phase: "Complete",
      completedRun: run,
    };
  if ((status.ready ?? 0) > 0)
    return {
      ready: true,
      reason: "Ready",
      message: "",
      phase: "Running",
      completedRun: ended?.run,
    };
  const message = ["its pod is not ready", ...waitingReasons(pods)].join("; ");
  return { ...PENDING, message, completedRun: ended?.run };
}

interface ContainerStatus {
  readonly name: string;
  readonly state?: {
    readonly waiting?: { readonly reason?: string; readonly message?: string };
  };
}

/** Reasons for which containers wait that pass by themselves. */
const PASSING = new Set(["PodInitializing", "ContainerCreating"]);
/** Reasons that are shown of many pods. */
const MAX_REASONS = 3;

/** Returns what the kubelet says of containers that cannot start. */
function waitingReasons(pods: readonly KubeObject[]): readonly string[] {
  const reasons = pods.flatMap((pod) => {
    const status = (pod["status"] ?? {}) as {
      readonly initContainerStatuses?: readonly ContainerStatus[];
      readonly containerStatuses?: readonly ContainerStatus[];
    };
    return [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])].flatMap(
      ({ name, state }) => {
        const { reason = "", message = "" } = state?.waiting ?? {};
        if (reason === "" || PASSING.has(reason)) return [];
        const told = message === "" ? "" : `: ${message.slice(0, MAX_TOLD)}`;
        return [`container ${name}: ${reason}${told}`];
      },
    );
  });
  return [...new Set(reasons)].slice(0, MAX_REASONS);
}
