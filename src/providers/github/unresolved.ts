import type { ActionResolution } from "../contract.ts";

/**
 * @param reason sentence for the agent, without its full stop; contains nothing of the request that
 * must not be logged
 */
export function unresolved(
  reason: string,
  hint?: string,
): ActionResolution & { readonly kind: "unresolved" } {
  return hint === undefined ? { kind: "unresolved", reason } : { kind: "unresolved", reason, hint };
}
