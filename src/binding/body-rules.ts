/** Converts plugins' body rules to Envoy's route matches. */
import type { SidecarBodyRule } from "../envoy/config/sidecar.ts";
import type { BodyRule } from "../providers/contract.ts";

/** @param hosts hosts of the binding, exact or `*.` patterns */
export function compileBodyRules(
  rules: readonly BodyRule[],
  hosts: readonly string[],
): readonly SidecarBodyRule[] {
  return rules.flatMap((rule) => {
    const { exceptHosts, exceptPaths, exceptContentTypes, methods, maxBytes } = rule;
    const named = rule.hosts.length === 0 ? hosts : rule.hosts;
    const read: SidecarBodyRule = {
      authority: withPort(named.map(hostRegex).join("|")),
      methods,
      path: `(?:${rule.paths.map(pathRegex).join("|")})`,
      contentType: undefined,
      maxBytes,
    };
    // The first matching rule applies, so the exceptions come before the rule.
    const unread = { ...read, maxBytes: undefined };
    return [
      ...(exceptHosts === undefined ? [] : [{ ...unread, authority: withPort(exceptHosts) }]),
      ...(exceptPaths === undefined ? [] : [{ ...unread, path: exceptPaths }]),
      ...(exceptContentTypes === undefined
        ? []
        : [{ ...unread, contentType: `(?i)(?:${exceptContentTypes})` }]),
      read,
    ];
  });
}

const MAX_FORM_BYTES = 16 * 1024 * 1024;

/**
 * Forms that no plugin's rule reads, or that it leaves unread: one of their parameters may ask for
 * another method, see rewriting.ts.
 */
export const FORMS: SidecarBodyRule = {
  authority: ".*",
  methods: ["POST"],
  path: "/.*",
  contentType: "(?i)application/x-www-form-urlencoded(?:[ \\t]*;.*)?",
  maxBytes: MAX_FORM_BYTES,
};

function withPort(hosts: string): string {
  return `(?:${hosts})(?::443|:80)?`;
}

function hostRegex(host: string): string {
  return host.startsWith("*.") ? `(?:[^.:]+\\.)+${escaped(host.slice(2))}` : escaped(host);
}

function pathRegex(path: string): string {
  if (path.startsWith("*")) return `/.*${template(path.slice(1))}`;
  return path.endsWith("*") ? `${template(path.slice(0, -1))}.*` : template(path);
}

/** `{}` matches one segment. */
function template(path: string): string {
  return path.split("{}").map(escaped).join("[^/]+");
}

function escaped(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
