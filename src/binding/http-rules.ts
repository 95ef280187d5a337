/**
 * `policy.httpRules`: method and path globs. The first match applies; if there are rules, a request
 * that matches none is denied.
 */
import { escapesNeedlessly } from "../providers/raw-url.ts";
import type { BindingSpec } from "../resources/binding-spec.ts";
import { compilePathGlobs } from "./path-glob.ts";

export type RuleVerdict =
  | { readonly kind: "allowed" }
  | { readonly kind: "denied"; readonly rule: string };

export type HttpRules = (method: string, path: string) => RuleVerdict;

const ALLOWED: RuleVerdict = { kind: "allowed" };

/**
 * Returns whether servers could interpret a path differently: dot segments, empty segments,
 * parameters, and percent-encoding of reserved or unreserved characters. No glob is reliable for
 * such a path, so it is denied if there are rules.
 */
export function isAmbiguousPath(path: string): boolean {
  const segments = path.split("/").slice(1);
  // A trailing slash is not an empty segment.
  if (segments.at(-1) === "" && segments.length > 1) segments.pop();
  if (
    path !== "/" &&
    segments.some((segment) => segment === "" || segment === "." || segment === "..")
  )
    return true;
  if (escapesNeedlessly(path)) return true;
  return /[;\\]|%(?:2[fF]|5[cC]|3[bB]|25|[01][0-9a-fA-F]|7[fF])|%(?![0-9a-fA-F]{2})/.test(path);
}

export function compileHttpRules(rules: BindingSpec["policy"]["httpRules"]): HttpRules {
  if (rules.length === 0) return () => ALLOWED;
  const compiled = rules.map((rule, index) => {
    const covers = compilePathGlobs(rule.paths, false);
    const methods = rule.methods.includes("*") ? undefined : new Set(rule.methods);
    return {
      action: rule.action,
      name: `policy.httpRules[${index}]: ${rule.action} ${rule.methods.join(",")} ${rule.paths.join(" ")}`,
      matches: (method: string, path: string) =>
        (methods === undefined || methods.has(method)) && covers(path) !== undefined,
    };
  });
  return (method, path) => {
    if (isAmbiguousPath(path))
      return { kind: "denied", rule: "policy.httpRules: the path is ambiguous" };
    const rule = compiled.find((each) => each.matches(method, path));
    if (rule === undefined) return { kind: "denied", rule: "policy.httpRules: no rule matches" };
    return rule.action === "allow" ? ALLOWED : { kind: "denied", rule: rule.name };
  };
}
