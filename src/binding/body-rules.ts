/** Plugins' body rules as Envoy's routes match them. */
import type { SidecarBodyRule } from "../compile/envoy/sidecar.ts";
import type { BodyRule } from "../providers/contract.ts";

/** @param hosts of the binding, exact or `*.` patterns */
export function compileBodyRules(
  rules: readonly BodyRule[],
  hosts: readonly string[],
): readonly SidecarBodyRule[] {
  return rules.flatMap(({ hosts: only, exceptHosts, methods, paths, maxBytes }) => {
    const named = only.length === 0 ? hosts : only;
    const path = `(?:${paths.map(pathRegex).join("|")})`;
    const rule = { authority: withPort(named.map(hostRegex).join("|")), methods, path, maxBytes };
    if (exceptHosts === undefined) return [rule];
    return [{ ...rule, authority: withPort(exceptHosts), maxBytes: undefined }, rule];
  });
}

function withPort(hosts: string): string {
  return `(?:${hosts})(?::443|:80)?`;
}

function hostRegex(host: string): string {
  return host.startsWith("*.") ? `(?:[^.:]+\\.)+${escaped(host.slice(2))}` : escaped(host);
}

function pathRegex(path: string): string {
  if (path.startsWith("*")) return `/.*${escaped(path.slice(1))}`;
  return path.endsWith("*") ? `${escaped(path.slice(0, -1))}.*` : escaped(path);
}

function escaped(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
