/**
 * The files that a sidecar reads in its pod: its options, which it reads once, and the specs of its
 * Providers, which it watches. Both are keys of the ConfigMap `svc-{workload}-providers`.
 */
import { hostsOf } from "../binding/hosts.ts";
import { CONFIG_DIR, type SidecarPodOptions, SPEC_FILE } from "../pod/sidecar-options.ts";
import { plugins } from "../providers/registry.ts";
import type { BindingSpecs } from "../resources/binding-spec.ts";
import type { ControllerConfig } from "./config.ts";

/** Ports of loopback that agents call, and those to which an init container redirects them. */
export const PORTS = { https: 8443, http: 8081, dns: 8053 } as const;

/** Hosts that a sidecar intercepts, exact and `*.` patterns. */
export function interceptedHosts({ bindings }: BindingSpecs): readonly string[] {
  const hosts = bindings.flatMap((binding) => {
    const plugin = plugins.get(binding.type);
    return plugin === undefined ? [] : hostsOf(binding, plugin);
  });
  return [...new Set(hosts)].toSorted();
}

export function sidecarOptions(
  workload: string,
  { interception, gateway, sidecar, audit }: ControllerConfig,
  dnsServers: readonly string[],
): SidecarPodOptions {
  const own = interception === "sysctl";
  return {
    workload,
    specFile: `${CONFIG_DIR}/${SPEC_FILE}`,
    pollMs: sidecar.pollSeconds * 1_000,
    ports: {
      https: own ? 443 : PORTS.https,
      http: PORTS.http,
      dns: own ? 53 : PORTS.dns,
      metrics: sidecar.metricsPort,
    },
    dnsNames: [{ name: gateway.host }],
    dnsServers: [...dnsServers],
    audit: audit.enabled,
    extraRoots: sidecar.upstreamCaConfigMap !== "",
    logLevel: sidecar.logLevel,
  };
}
