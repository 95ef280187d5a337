/** Counts of guards in a cluster: the sums over the gateways' pods, which know their own alone. */
import { guardUsage } from "../../gateway/guard-counts.ts";
import type { ObjectView } from "../backend.ts";
import type { ClusterSession } from "./session.ts";
import { askGateways } from "./status.ts";

/**
 * Adds the counts to GuardBindings. They stay unknown if a pod does not answer, or if the user may
 * not ask the pods: less than all of them would look like fewer checks.
 */
export async function withGuardCounts(
  session: ClusterSession,
  bindings: readonly ObjectView[],
): Promise<readonly ObjectView[]> {
  if (bindings.length === 0) return bindings;
  const answers = await askGateways(session).catch(() => []);
  const guards = answers.map(({ status }) => status?.guards);
  if (guards.length === 0 || guards.includes(undefined)) return bindings;
  return bindings.map((binding) => {
    const { namespace, name } = binding.metadata;
    const counts = guards.map((found) => found?.[`${namespace}/${name}`]);
    return { ...binding, status: { ...binding.status, ...guardUsage(counts) } };
  });
}
