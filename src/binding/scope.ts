/** `spec.scope`: the resources on which a binding may act. */
import type { ProviderPlugin, ServiceResource, ScopeKey } from "../providers/contract.ts";
import type { BindingSpec } from "../resources/binding-spec.ts";
import { compilePathGlobs } from "./path-glob.ts";
import { compileWildcards } from "./wildcard.ts";

export type ScopeVerdict =
  | { readonly kind: "inside" }
  | { readonly kind: "outside"; readonly rule: string; readonly resource: string };

export type Scope = (resources: readonly ServiceResource[]) => ScopeVerdict;

const INSIDE: ScopeVerdict = { kind: "inside" };

/** Keys whose values have segments; `*` matches only within a segment. */
const SEGMENTED: ReadonlySet<ScopeKey> = new Set(["repositories", "resourceGroups", "containers"]);

/**
 * Every key that is set must be satisfied by each resource of its kind, and by at least one
 * resource, so that a request for something wider (a subscription, if resource groups are named) is
 * out of scope. A request that touches nothing that a scope could name is in scope.
 * @throws Error for a key that the plugin does not fill, because it could not be enforced
 */
export function compileScope(
  scope: BindingSpec["scope"],
  plugin: ProviderPlugin,
  binding = plugin.providerName,
): Scope {
  const set = Object.entries(scope).flatMap(([name, globs]) => {
    if (globs === undefined) return [];
    if (!Object.hasOwn(plugin.scopeKeys, name))
      throw new Error(
        `Provider ${binding}: spec.scope.${name}: ${plugin.providerName} has only ` +
          Object.keys(plugin.scopeKeys).join(", "),
      );
    const key = name as ScopeKey;
    return [{ key, matches: compileGlobs(key, globs, plugin.scopeIgnoresCase) }];
  });
  if (set.length === 0) return () => INSIDE;
  return (resources) => {
    const touched = resources.filter((resource) => resource.kind !== "none");
    if (touched.length === 0) return INSIDE;
    const odd = touched.find(
      (resource) =>
        resource.kind === "unscopable" &&
        (resource.keys === undefined || set.some(({ key }) => resource.keys?.includes(key))),
    );
    if (odd?.kind === "unscopable")
      return { kind: "outside", rule: `spec.scope: ${odd.reason}`, resource: "" };
    for (const { key, matches } of set) {
      const values = touched.flatMap((resource) =>
        resource.kind === "scoped" && resource.key === key ? [resource.value] : [],
      );
      if (values.length === 0)
        return {
          kind: "outside",
          rule: `spec.scope.${key}: the request acts on something wider than the scope`,
          resource: "",
        };
      const outside = values.find((value) => !matches(value));
      if (outside !== undefined)
        return { kind: "outside", rule: `spec.scope.${key}: not in it`, resource: outside };
    }
    return INSIDE;
  };
}

function compileGlobs(
  key: ScopeKey,
  globs: readonly string[],
  ignoreCase: boolean,
): (value: string) => boolean {
  const compile = SEGMENTED.has(key) ? compilePathGlobs : compileWildcards;
  const covering = compile(globs, ignoreCase);
  return (value) => covering(value) !== undefined;
}
