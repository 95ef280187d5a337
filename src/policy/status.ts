/**
 * Status of an object: whether it is in use, and the reason. The reasons are shared by statuses,
 * events and tests; each names the fact that was found.
 */
import { isResourceKind, resourceId, type ResourceKind } from "../resources/kinds.ts";
import { keyOf } from "../resources/metadata.ts";
import type { Problem, ProblemReason } from "../resources/problem.ts";
import { formatProblem } from "../resources/problem.ts";
import type { ObjectUsage } from "../resources/usage.ts";

export const REASONS = [
  /** In use, as written. */
  "Ready",
  /** Not in use: the environment variable of its `svc.io/when-env` is not set. Not an error. */
  "Skipped",
  /** In use; some of its fallbacks cannot be used and are left out. */
  "DegradedFallbacks",
  /** In use; some of its models cannot be used. */
  "DegradedModels",
  /** In use; some of its fields have no effect yet. */
  "FieldsWithoutEffect",
  /** Its `runAsUser` is 0: it is not run, and its calls are denied. */
  "RunsAsRoot",
  /** Its `runAsUser` is the sidecar's: it is not run. */
  "ReservedUser",
  /** One of its volumes is that of the audit chains: it is not run. */
  "ReservedVolume",
  /** The Service of the gateway does not exist: agents could reach nothing. */
  "GatewayNotFound",
  /** An object that is not the controller's has the name of one that it needs. */
  "NameTaken",
  /** The API server refuses one of its objects, for example by a quota or an admission rule. */
  "ApplyRefused",
  /** Its pods are not ready yet. */
  "PodsNotReady",
  /** Its task has failed. */
  "TaskFailed",
  /** The referenced Secret does not exist, or is skipped. */
  "SecretDoesNotExist",
  "SecretKeyDoesNotExist",
  /** The value is empty, or cannot be sent in a header. */
  "SecretValueInvalid",
  /** A `${NAME}` without default, whose variable is not set. */
  "EnvironmentVariableNotSet",
  /** No mock upstream runs in this process. */
  "MockNotAvailable",
  /** There is no ModelProvider of that name in the namespace. */
  "UnknownProvider",
  "ProviderNotReady",
  /** The ModelProvider does not expose the model. */
  "ModelNotAllowed",
  /** Its ModelProvider's `externalAccess.enabled` is not true. */
  "ExternalAccessDisabled",
  "KeyExpired",
  "KeyRevoked",
  /** The ConfigMap of prices of another namespace is in use. */
  "DuplicatePrices",
  /** Another AccessKey has the same SHA-256. */
  "DuplicateKey",
  /** In use; it names models that its ModelProvider does not expose. */
  "DegradedRestrictions",
  /**
   * The service's plugin does not support the kind of authentication, or the Secret lacks a key.
   */
  "AuthTypeUnknown",
  /** The service's plugin cannot work with the settings. */
  "ConfigInvalid",
  /** In use; some of its Providers are not. */
  "DegradedProviders",
  /** It names a GuardBinding that does not exist, or is skipped: its calls are denied. */
  "UnknownGuardBinding",
  /** An `audit` would relax a GuardBinding that enforces; the override is rejected. */
  "RelaxedGuard",
  /** The GuardBinding has no endpoint, and no guard service runs: its guards let calls pass. */
  "GuardServiceNotAvailable",
  /** In use by Agents; the guards of its external access are not as it declares them. */
  "DegradedExternalAccess",
  /** Envoy has rejected the ModelProvider's clusters. */
  "EnvoyRejected",
  // Reasons of objects that were not loaded, or not in their newest version.
  "InvalidSyntax",
  "InvalidSpec",
  "NotSupportedYet",
  "DuplicateObject",
  "FileUnreadable",
] as const;

export type Reason = (typeof REASONS)[number];

/** The verdict on an object: whether it is in use, and the reason. Compilers report it. */
export interface Verdict {
  readonly kind: ResourceKind;
  readonly namespace: string;
  readonly name: string;
  /** Whether it serves requests; a degraded object does. */
  readonly ready: boolean;
  readonly reason: Reason;
  /** For people; contains no value of a Secret. */
  readonly message: string;
}

/**
 * A condition of an object: Kubernetes' `metav1.Condition`, without the time of its last
 * transition, which its sink knows.
 */
export interface Condition {
  /**
   * - `Ready`: it is in use, as the status says.
   * - `Programmed`: every connected Envoy has accepted its clusters. Only for a ModelProvider.
   */
  readonly type: "Ready" | "Programmed";
  readonly status: "True" | "False" | "Unknown";
  readonly reason: Reason | "Programmed" | "Pending";
  readonly message: string;
  readonly observedGeneration?: number;
}

/** The status of an object. */
export interface ObjectStatus extends Verdict {
  readonly conditions: readonly Condition[];
  /**
   * `metadata.generation` of the newest version; undefined if its source has no generations, as a
   * folder of files.
   */
  readonly observedGeneration?: number;
  /** For an Agent: `Failed` if its newest version was refused, or would run as root. */
  readonly phase?: "Failed";
  /** For an Agent with an inbound host name: `https://<hostname>`. */
  readonly url?: string;
  /** Today's usage, where the status is shown: the compiler does not know it. */
  readonly usage?: Partial<ObjectUsage>;
}

/**
 * Maximum number of characters of a message: an Agent may name a thousand models, and what an
 * object of Kubernetes holds is bounded.
 */
export const MAX_STATUS_MESSAGE = 4_096;

/** Cuts a message that is too long. */
export function boundedMessage(text: string): string {
  if (text.length <= MAX_STATUS_MESSAGE) return text;
  return `${text.slice(0, MAX_STATUS_MESSAGE).toWellFormed()}...`;
}

/**
 * Builds the status of an object.
 * @param generation `metadata.generation` of its newest version; undefined if there is none
 */
export function statusOf(verdict: Verdict, generation: number | undefined): ObjectStatus {
  const { kind, ready, reason } = verdict;
  const message = boundedMessage(verdict.message);
  const observed = generation === undefined ? {} : { observedGeneration: generation };
  return {
    ...verdict,
    message,
    ...observed,
    ...(kind === "Agent" && (reason in PROBLEM_REASONS || reason === "RunsAsRoot")
      ? { phase: "Failed" }
      : {}),
    conditions: [{ type: "Ready", status: ready ? "True" : "False", reason, message, ...observed }],
  };
}

/** Envoy's answer for its newest configuration, or for a part of it. */
export type EnvoyAnswer =
  | { readonly kind: "accepted" }
  /** There is no answer yet; `message` says why. */
  | { readonly kind: "pending"; readonly message: string }
  /** `message` is Envoy's. */
  | { readonly kind: "rejected"; readonly message: string };

/**
 * Adds Envoy's answer as the condition `Programmed`. An object whose clusters were rejected does
 * not serve requests.
 */
export function withProgrammed(status: ObjectStatus, answer: EnvoyAnswer): ObjectStatus {
  const { observedGeneration } = status;
  const observed = observedGeneration === undefined ? {} : { observedGeneration };
  const type = "Programmed";
  if (answer.kind === "rejected") {
    const reason = "EnvoyRejected";
    const message = `Envoy rejected its clusters: ${answer.message}`;
    const refused = { status: "False", reason, message } as const;
    return {
      ...status,
      ready: false,
      reason,
      message,
      conditions: [
        ...status.conditions.map((condition) =>
          condition.type === "Ready" ? { ...condition, ...refused } : condition,
        ),
        { type, ...refused, ...observed },
      ],
    };
  }
  const state =
    answer.kind === "accepted"
      ? ({ status: "True", reason: "Programmed", message: "" } as const)
      : ({ status: "Unknown", reason: "Pending", message: answer.message } as const);
  return { ...status, conditions: [...status.conditions, { type, ...state, ...observed }] };
}

/** A condition as it is published: Kubernetes' `metav1.Condition`. */
export interface PublishedCondition extends Condition {
  /** When `status` last changed (RFC 3339, whole seconds as in Kubernetes). */
  readonly lastTransitionTime: string;
}

/** The status of an object as it is published. */
export interface PublishedStatus extends ObjectStatus {
  readonly conditions: readonly PublishedCondition[];
}

/**
 * Adds the times of the last transitions. A condition whose status has not changed keeps its time.
 *
 * @param before the statuses published before
 * @param now milliseconds since the epoch
 */
export function withTransitionTimes(
  statuses: readonly ObjectStatus[],
  before: readonly PublishedStatus[],
  now: number,
): PublishedStatus[] {
  const known = new Map(before.map((status) => [resourceId(status), status.conditions]));
  const time = new Date(now).toISOString().replace(/\.\d+Z$/, "Z");
  return statuses.map((status) => {
    const last = known.get(resourceId(status)) ?? [];
    const conditions = status.conditions.map((condition): PublishedCondition => {
      const same = last.find(
        (other) => other.type === condition.type && other.status === condition.status,
      );
      return { ...condition, lastTransitionTime: same?.lastTransitionTime ?? time };
    });
    return { ...status, conditions };
  });
}

/**
 * Adds the problems found by the source. An object whose last good version still serves keeps its
 * `ready` and gets the problem's reason; one that was never loaded is not ready. Problems without
 * an object are left to the caller.
 */
export function withProblems(
  verdicts: readonly Verdict[],
  problems: readonly Problem[],
): Verdict[] {
  const byId = new Map(verdicts.map((status) => [resourceId(status), status]));
  for (const problem of problems) {
    const { kind, namespace, name } = problem;
    if (
      kind === undefined ||
      namespace === undefined ||
      name === undefined ||
      !isResourceKind(kind)
    )
      continue;
    const id = resourceId({ kind, namespace, name });
    const serving = byId.get(id);
    // The first problem of an object determines its status, and a problem of a second object with
    // its name does not affect the first.
    if (
      serving !== undefined &&
      (serving.reason in PROBLEM_REASONS || problem.reason === "DuplicateObject")
    )
      continue;
    byId.set(id, {
      kind,
      namespace,
      name,
      ready: serving?.ready ?? false,
      reason: problem.reason,
      message:
        serving === undefined
          ? formatProblem(problem)
          : `the last good version is in use: ${formatProblem(problem)}`,
    });
  }
  return sortVerdicts([...byId.values()]);
}

const PROBLEM_REASONS: Readonly<Record<ProblemReason, true>> = {
  InvalidSyntax: true,
  InvalidSpec: true,
  NotSupportedYet: true,
  DuplicateObject: true,
  FileUnreadable: true,
};

/** Sorts by kind, namespace and name. */
export function sortVerdicts(verdicts: readonly Verdict[]): Verdict[] {
  const sortKey = (verdict: Verdict) => `${verdict.kind}\0${keyOf(verdict)}`;
  return verdicts
    .map((verdict) => ({ verdict, key: sortKey(verdict) }))
    .sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0))
    .map(({ verdict }) => verdict);
}
