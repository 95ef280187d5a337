/** `policy.allow` and `policy.deny`: deny first; with an allow list what is not on it is denied. */
import { compileWildcards } from "./wildcard.ts";

export type ListVerdict =
  | { readonly kind: "allowed" }
  /** `rule` is the list and its entry, as they stand in the spec. */
  | { readonly kind: "denied"; readonly rule: string };

export interface ActionLists {
  /** @param broader wider actions that cover it: what a list says of these it says of it */
  judge(action: string, broader?: readonly string[]): ListVerdict;
  /** As the spec has it; undefined where everything that is not denied is allowed. */
  readonly allow: readonly string[] | undefined;
}

/** Actions are compared without regard to case: AWS' own are. */
export function compileActionLists({
  allow,
  deny,
}: {
  readonly allow?: readonly string[] | undefined;
  readonly deny: readonly string[];
}): ActionLists {
  const denied = compileWildcards(deny, true);
  const allowed = allow === undefined ? undefined : compileWildcards(allow, true);
  return {
    allow,
    judge: (action, broader = []) => {
      const names = [action, ...broader];
      const entry = names.map(denied).find((each) => each !== undefined);
      if (entry !== undefined) return { kind: "denied", rule: `policy.deny: ${entry}` };
      if (allowed !== undefined && names.every((name) => allowed(name) === undefined))
        return { kind: "denied", rule: "policy.allow: not on the list" };
      return { kind: "allowed" };
    },
  };
}
