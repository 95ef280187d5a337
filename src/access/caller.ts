/** Names and audit fields of callers, the same for every surface of the gateway. */
import type { CallerPolicy } from "../policy/snapshot.ts";

/**
 * Name of all callers that are not known: together they are one caller. No workload has this name,
 * because it contains neither `/` nor `:`.
 */
export const ANONYMOUS = "anonymous";

/**
 * Returns the name of a caller among all callers. Unlike `workload`, it contains the namespace of
 * an access key, because names of keys are unique in their namespace only.
 */
export function callerName(policy: CallerPolicy | undefined): string {
  if (policy === undefined) return ANONYMOUS;
  return policy.kind === "agent" ? policy.workload : `ext:${policy.namespace}/${policy.name}`;
}

/** Fields of an audit record that say who the caller is. */
export interface CallerFields {
  /** Namespace and name of the access key. */
  readonly access_key?: string;
  readonly source?: "external";
  readonly workload?: string;
}

/** Returns the audit fields of a caller: none where it is not known. */
export function callerFields(policy: CallerPolicy | undefined): CallerFields {
  if (policy === undefined) return {};
  if (policy.kind === "agent") return { workload: policy.workload };
  return {
    workload: policy.workload,
    source: "external",
    access_key: `${policy.namespace}/${policy.name}`,
  };
}
