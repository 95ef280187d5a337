/**
 * Resolves the guards of an Agent: its GuardBindings, with its own overrides, which can only
 * tighten them. Pure.
 */
import type { Reason } from "../policy/status.ts";
import type { Agent } from "../resources/agent.ts";
import type { GuardBinding } from "../resources/guard-binding.ts";
import type { GuardSpec, GuardSpecs } from "../resources/guard-spec.ts";
import { keyOf } from "../resources/metadata.ts";

/** Why an Agent's guards are not as it declares them. The Agent is not ready. */
export interface GuardProblem {
  readonly reason: Extract<Reason, "UnknownGuardBinding" | "RelaxedGuard">;
  /** Name of the GuardBinding. */
  readonly binding: string;
  /** For people, with the fix. */
  readonly message: string;
}

export interface ResolvedGuards {
  /** The guards to enforce. A rejected override leaves the binding's own enforcement. */
  readonly resolved: GuardSpecs;
  readonly problems: readonly GuardProblem[];
}

/** @param bindings by `<namespace>/<name>` */
export function resolveGuards(
  agent: Agent,
  bindings: ReadonlyMap<string, GuardBinding>,
): ResolvedGuards {
  const problems: GuardProblem[] = [];
  const guards: GuardSpec[] = [];
  for (const [index, guard] of (agent.spec.guards ?? []).entries()) {
    const { binding: name, scan } = guard;
    const binding = bindings.get(keyOf({ namespace: agent.namespace, name }));
    if (binding === undefined) {
      problems.push({
        reason: "UnknownGuardBinding",
        binding: name,
        message:
          `spec.guards[${index}]: there is no GuardBinding ${name} in the namespace ` +
          `${agent.namespace}. Create it, or correct the name.`,
      });
      continue;
    }
    const { classifier, thresholds, timeoutMs, audit, enforcement: own } = binding.spec;
    if (guard.enforcement === "audit" && own === "enforce") {
      problems.push({
        reason: "RelaxedGuard",
        binding: name,
        message:
          `spec.guards[${index}].enforcement: "audit" would relax the GuardBinding ${name}, ` +
          "which enforces. Remove it; an Agent can only tighten a binding.",
      });
    }
    const enforcement = own === "enforce" ? "enforce" : (guard.enforcement ?? own);
    guards.push({ binding: name, classifier, thresholds, enforcement, timeoutMs, audit, scan });
  }
  return { resolved: { version: 1, workload: keyOf(agent), guards }, problems };
}
