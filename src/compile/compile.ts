/**
 * Compiles a load of resources into everything that the gateway brings into force: the policy of
 * requests, the configuration of the sidecars, and the status of every object. Pure: all external
 * inputs are in its options. An object that cannot be used is left out, with its reason in its
 * status; it never widens what the others allow.
 */
import type { PolicySnapshot } from "../policy/snapshot.ts";
import {
  type ObjectStatus,
  sortVerdicts,
  statusOf,
  type Verdict,
  withProblems,
} from "../policy/status.ts";
import { resourceId } from "../resources/kinds.ts";
import { keyOf } from "../resources/metadata.ts";
import type { ResourceSet } from "../resources/resource-set.ts";
import type { LoadResult } from "../sources/load-result.ts";
import {
  type BindingsOptions,
  compileBindings,
  type CompiledBindings,
  type SidecarConfig,
} from "./bindings.ts";
import { compilePolicy, type PolicyOptions } from "./policy.ts";

/** Everything that the result depends on besides the resources. */
export interface CompileOptions extends PolicyOptions, BindingsOptions {}

export interface Compiled {
  /** The resources that were compiled. */
  readonly resources: ResourceSet;
  readonly policy: PolicySnapshot;
  /** By `<namespace>/<name>` of the Agent; only for Agents that list Providers. */
  readonly sidecars: ReadonlyMap<string, SidecarConfig>;
  /** One for each object, by kind, namespace and name. */
  readonly statuses: readonly ObjectStatus[];
  /**
   * When the same resources have to be compiled again, because a status changes with time alone:
   * milliseconds since the epoch; undefined for never.
   */
  readonly recheckAt: number | undefined;
}

export function compile(
  { resources, problems, generations }: LoadResult,
  options: CompileOptions,
): Compiled {
  const { snapshot, statuses, recheckAt } = compilePolicy(resources, options);
  const bindings = compileBindings(resources, options);
  const verdicts = withProblems(withBindings(statuses, bindings), problems);
  return {
    resources,
    policy: snapshot,
    sidecars: bindings.sidecars,
    statuses: verdicts.map((verdict) => statusOf(verdict, generations.get(resourceId(verdict)))),
    recheckAt,
  };
}

/** Adds the Providers. An Agent with unusable Providers is in use, with a degraded status. */
function withBindings(
  verdicts: readonly Verdict[],
  { statuses: providers, missing }: CompiledBindings,
): Verdict[] {
  const judged = verdicts.map((verdict): Verdict => {
    const absent = verdict.kind === "Agent" ? missing.get(keyOf(verdict)) : undefined;
    if (absent === undefined) return verdict;
    const message = [verdict.message, ...absent].filter((part) => part !== "").join("; ");
    return {
      ...verdict,
      reason: verdict.reason === "Ready" ? "DegradedProviders" : verdict.reason,
      message,
    };
  });
  return sortVerdicts([...judged, ...providers]);
}
