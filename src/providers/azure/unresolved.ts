import type { ActionResolution } from "../contract.ts";

export function unresolved(reason: string, hint?: string): ActionResolution {
  return { kind: "unresolved", reason, ...(hint === undefined ? {} : { hint }) };
}
