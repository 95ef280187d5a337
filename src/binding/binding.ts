/** A binding is one Provider's compiled spec with its plugin instance. */
import type { McpPolicy } from "../mcp/protocol/item-policy.ts";
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
  /** Items of an MCP server that may be used; undefined for other services. */
  readonly items: McpPolicy | undefined;
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
    items: plugin.compileItems?.(spec.policy.mcp),
  };
}

/** All bindings at one time; immutable, replaced as a whole. */
export interface BindingSnapshot {
  readonly version: string;
  readonly workload: string;
  /**
   * Returns the bindings of a host, in the order of the agent's Providers; none if it is not bound.
   * Only the most specific entry that matches the host counts: an exact host, else the longest
   * pattern.
   */
  bindingsOf(host: string): readonly Binding[];
}

export function compileSnapshot(
  version: string,
  workload: string,
  bindings: readonly Binding[],
): BindingSnapshot {
  const exact = new Map<string, Binding[]>();
  const suffixes = new Map<string, Binding[]>();
  for (const binding of bindings) {
    for (const host of new Set(binding.hosts)) {
      const isPattern = host.startsWith("*.");
      const entries = isPattern ? suffixes : exact;
      const entry = isPattern ? host.slice(1) : host;
      entries.set(entry, [...(entries.get(entry) ?? []), binding]);
    }
  }
  const patterns = [...suffixes].sort(([a], [b]) => b.length - a.length);
  return {
    version,
    workload,
    bindingsOf: (host) =>
      exact.get(host) ??
      patterns.find(([suffix]) => host.endsWith(suffix) && host.length > suffix.length)?.[1] ??
      [],
  };
}
