/**
 * Status of an object: whether it is in use, and the reason. The reasons are shared by statuses,
 * events and tests; each names the fact that was found.
 */
import { keyOf } from "../resources/metadata.ts";
import type { Problem, ProblemReason } from "../resources/problem.ts";
import { formatProblem } from "../resources/problem.ts";
import { isResourceKind, resourceId, type ResourceKind } from "../resources/resource-set.ts";

export const REASONS = [
  /** In use, as written. */
  "Ready",
  /** Not in use: the environment variable of its `svc.io/when-env` is not set. Not an error. */
  "Skipped",
  /** In use; some of its fallbacks cannot be used and are left out. */
  "DegradedFallbacks",
  /** In use; some of its models cannot be used. */
  "DegradedModels",
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
  // Reasons of objects that were not loaded, or not in their newest version.
  "InvalidSyntax",
  "InvalidSpec",
  "NotSupportedYet",
  "DuplicateObject",
  "FileUnreadable",
] as const;

export type Reason = (typeof REASONS)[number];

export interface ObjectStatus {
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
 * Adds the problems found by the source. An object whose last good version still serves keeps its
 * `ready` and gets the problem's reason; one that was never loaded is not ready. Problems without
 * an object are left to the caller.
 */
export function withProblems(
  statuses: readonly ObjectStatus[],
  problems: readonly Problem[],
): ObjectStatus[] {
  const byId = new Map(statuses.map((status) => [resourceId(status), status]));
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
  return sortStatuses([...byId.values()]);
}

const PROBLEM_REASONS: Readonly<Record<ProblemReason, true>> = {
  InvalidSyntax: true,
  InvalidSpec: true,
  NotSupportedYet: true,
  DuplicateObject: true,
  FileUnreadable: true,
};

/** By kind, namespace and name. */
export function sortStatuses(statuses: ObjectStatus[]): ObjectStatus[] {
  const sortKey = (status: ObjectStatus) => `${status.kind}\0${keyOf(status)}`;
  return statuses
    .map((status) => ({ status, key: sortKey(status) }))
    .sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0))
    .map(({ status }) => status);
}
