/**
 * Decides the next step for the Job of a task. Pure. A Job cannot be changed: a change of the task
 * makes another run, and everything else, such as a newer sidecar, leaves a run under way as it is.
 */
import type { KubeObject } from "../kubernetes/objects.ts";
import type { EndedRun } from "./agent-status.ts";
import { RUN_ANNOTATION } from "./names.ts";
import type { Plan } from "./plan.ts";

export type TaskStep =
  | { readonly kind: "none" }
  /** There is none for this run. */
  | { readonly kind: "create" }
  /** It is of another run. */
  | { readonly kind: "delete" }
  /** JSON merge patch of fields that can be changed. */
  | { readonly kind: "patch"; readonly patch: object };

/** Fields of a Job's spec that can be changed while it runs. */
const MUTABLE = ["parallelism", "suspend", "backoffLimit", "activeDeadlineSeconds"] as const;

/**
 * @param job undefined if there is none
 * @param ended the run whose end is recorded in the Agent's status
 */
export function taskStep(
  { workload, run, ttlSeconds }: Pick<Plan, "workload" | "run" | "ttlSeconds">,
  job: KubeObject | undefined,
  ended: EndedRun | undefined,
): TaskStep {
  if (workload === undefined) return { kind: "none" };
  if (job === undefined) return { kind: ended?.run === run ? "none" : "create" };
  if (job.metadata.deletionTimestamp !== undefined) return { kind: "none" };
  if (job.metadata.annotations?.[RUN_ANNOTATION] !== run) return { kind: "delete" };
  const found = (job["spec"] ?? {}) as Readonly<Record<string, unknown>>;
  if (ended?.run === run) {
    const { ttlSecondsAfterFinished: ttl } = found;
    return ttlSeconds === undefined || ttl === ttlSeconds
      ? { kind: "none" }
      : { kind: "patch", patch: { spec: { ttlSecondsAfterFinished: ttlSeconds } } };
  }
  const planned = workload.object["spec"] as Readonly<Record<string, unknown>>;
  const changed = MUTABLE.filter((field) => found[field] !== planned[field]);
  return changed.length === 0
    ? { kind: "none" }
    : {
        kind: "patch",
        patch: {
          spec: Object.fromEntries(changed.map((field) => [field, planned[field] ?? null])),
        },
      };
}
