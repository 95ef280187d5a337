/**
 * `policy.allow` and `policy.deny`: deny is checked first; if there is an allow list, actions that
 * are not on it are denied.
 */
import { compileWildcards } from "./wildcard.ts";

export type ListVerdict =
  | { readonly kind: "allowed" }
  /** `rule` is the list and its entry, as in the spec. */
  | { readonly kind: "denied"; readonly rule: string };

export interface ActionLists {
  /** @param broader wider actions that cover it: entries for them also apply to it */
  judge(action: string, broader?: readonly string[]): ListVerdict;
  /** The list of the spec; undefined if everything that is not denied is allowed. */
  readonly allow: readonly string[] | undefined;
}

/** Actions are compared without regard to case, as AWS does. */
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
