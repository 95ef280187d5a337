/**
 * Determines the hosts that a binding intercepts: those of its spec, else those of its settings,
 * else the service's default hosts.
 */
import type { ProviderPlugin } from "../providers/contract.ts";
import type { BindingSpec } from "../resources/binding-spec.ts";

export function hostsOf(
  { hosts, config }: Pick<BindingSpec, "hosts" | "config">,
  plugin: ProviderPlugin,
): readonly string[] {
  return hosts ?? plugin.hostsFor?.(config) ?? [...plugin.defaultHosts, ...plugin.hostPatterns];
}
