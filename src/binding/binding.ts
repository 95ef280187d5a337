/** A binding is one Provider's compiled spec with its plugin instance. */
import type { ProviderInstance, ProviderPlugin } from "../providers/contract.ts";
import type { BindingSpec } from "../resources/binding-spec.ts";
import { type ActionLists, compileActionLists } from "./action-lists.ts";
import { compileHttpRules, type HttpRules } from "./http-rules.ts";
import { compileScope, type Scope } from "./scope.ts";

/** The parts that a hot reload may change. */
export interface BindingPolicy {
  readonly enforcement: "enforce" | "audit";
  readonly logRequests: boolean;
  readonly httpRules: HttpRules;
  readonly actions: ActionLists;
  readonly scope: Scope;
}

export interface Binding {
  readonly name: string;
  readonly plugin: ProviderPlugin;
  readonly instance: ProviderInstance;
  /** Exact hosts, and patterns that begin with `*.`. */
  readonly hosts: readonly string[];
  readonly policy: BindingPolicy;
}

/** @throws Error if the plugin cannot enforce the scope */
export function compileBindingPolicy(spec: BindingSpec, plugin: ProviderPlugin): BindingPolicy {
  return {
    enforcement: spec.audit.enforcement,
    logRequests: spec.audit.logRequests,
    httpRules: compileHttpRules(spec.policy.httpRules),
    actions: compileActionLists(spec.policy),
    scope: compileScope(spec.scope, plugin, spec.name),
  };
}

/** All bindings at one time; immutable, replaced as a whole. */
export interface BindingSnapshot {
  readonly version: string;
  readonly workload: string;
  /** Returns the binding of a host; undefined if there is none. */
  bindingOf(host: string): Binding | undefined;
}

/** @throws Error if two bindings claim the same host */
export function compileSnapshot(
  version: string,
  workload: string,
  bindings: readonly Binding[],
): BindingSnapshot {
  const exact = new Map<string, Binding>();
  const patterns: { readonly suffix: string; readonly binding: Binding }[] = [];
  for (const binding of bindings) {
    for (const host of binding.hosts) {
      if (host.startsWith("*.")) {
        patterns.push({ suffix: host.slice(1), binding });
        continue;
      }
      const other = exact.get(host);
      if (other !== undefined && other !== binding)
        throw new Error(
          `the host ${host} is claimed by the Providers ${other.name} and ${binding.name}: give one of them spec.hosts`,
        );
      exact.set(host, binding);
    }
  }
  // The longest matching pattern determines a host's binding.
  patterns.sort((a, b) => b.suffix.length - a.suffix.length);
  return {
    version,
    workload,
    bindingOf: (host) =>
      exact.get(host) ??
      patterns.find(({ suffix }) => host.endsWith(suffix) && host.length > suffix.length)?.binding,
  };
}
