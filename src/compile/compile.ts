/**
 * Compiles a load of resources into everything that the gateway brings into force: the policy of
 * requests, the configuration of the sidecars, and the status of every object. Pure: all external
 * inputs are in its options. An object that cannot be used is left out, with its reason in its
 * status; it never widens what the others allow.
 */
import type { PolicySnapshot } from "../policy/snapshot.ts";
import {
  type ObjectStatus,
  type Reason,
  sortVerdicts,
  statusOf,
  type Verdict,
  withProblems,
} from "../policy/status.ts";
import { resourceId } from "../resources/kinds.ts";
import { keyOf } from "../resources/metadata.ts";
import type { ModelPrices } from "../resources/model-prices.ts";
import type { ResourceSet } from "../resources/resource-set.ts";
import type { LoadResult } from "../sources/load-result.ts";
import {
  type BindingsOptions,
  compileBindings,
  type CompiledBindings,
  type SidecarConfig,
} from "./bindings.ts";
import { compilePrices } from "./prices.ts";
import { compilePolicy, type PolicyOptions } from "./policy.ts";

/** Everything that the result depends on besides the resources. */
export interface CompileOptions extends PolicyOptions, BindingsOptions {}

export interface Compiled {
  /** The resources that were compiled. */
  readonly resources: ResourceSet;
  readonly policy: PolicySnapshot;
  /** By `<namespace>/<name>` of the Agent; for every Agent that may run. */
  readonly sidecars: ReadonlyMap<string, SidecarConfig>;
  /** By `<namespace>/<name>` of the Agent: descriptions of its Providers that cannot be used. */
  readonly missing: ReadonlyMap<string, readonly string[]>;
  /** Overrides of the shipped prices. */
  readonly prices: ModelPrices;
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
  const { prices, verdicts: ofPrices } = compilePrices(resources, options.env);
  const verdicts = withProblems(withBindings([...statuses, ...ofPrices], bindings), problems);
  return {
    resources,
    policy: snapshot,
    sidecars: bindings.sidecars,
    missing: bindings.missing,
    prices,
    statuses: verdicts.map((verdict) => statusOf(verdict, generations.get(resourceId(verdict)))),
    recheckAt,
  };
}

/** Reasons of an object that serves everything that it names. */
const INTACT: ReadonlySet<Reason> = new Set<Reason>(["Ready", "FieldsWithoutEffect"]);

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
      reason: INTACT.has(verdict.reason) ? "DegradedProviders" : verdict.reason,
      message,
    };
  });
  return sortVerdicts([...judged, ...providers]);
}
