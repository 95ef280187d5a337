import type { ActionResolution } from "../contract.ts";

/**
 * @param reason sentence for the agent, without its full stop; holds nothing of the request that a
 * log should not
 */
export function unresolved(
  reason: string,
  hint?: string,
): ActionResolution & { readonly kind: "unresolved" } {
  return hint === undefined ? { kind: "unresolved", reason } : { kind: "unresolved", reason, hint };
}
