/**
 * Names that resolve to the sidecar: for our own hosts file, and for Kubernetes to write into the
 * pod's.
 */
import { compileBoundNames } from "./server-name.ts";

const IPV4 = "127.0.0.1";
const IPV6 = "::1";

/**
 * hosts(5). Contains both address families, because a lookup of a missing family would go to DNS.
 */
export function hostsFile(hosts: readonly string[]): string {
  const names = bound(hosts);
  const lines = [
    `${IPV4} localhost`,
    `${IPV6} localhost ip6-localhost ip6-loopback`,
    ...[IPV4, IPV6].flatMap((address) => names.map((name) => `${address} ${name}`)),
  ];
  return `${lines.join("\n")}\n`;
}

/**
 * `spec.hostAliases` of a pod. The kubelet writes them into every container's hosts file, the
 * sidecar's included.
 */
export interface HostAlias {
  readonly ip: string;
  readonly hostnames: readonly string[];
}

export function hostAliases(hosts: readonly string[]): readonly HostAlias[] {
  const hostnames = bound(hosts);
  return hostnames.length === 0 ? [] : [IPV4, IPV6].map((ip) => ({ ip, hostnames }));
}

/**
 * Returns the names in order, without duplicates. @throws RangeError for an invalid host name,
 * which could add a line of its own
 */
function bound(hosts: readonly string[]): string[] {
  const name = compileBoundNames({ hosts, patterns: [] });
  return [...new Set(hosts.map((host) => name(host) as string))]
    .filter((host) => host !== "localhost")
    .sort();
}
