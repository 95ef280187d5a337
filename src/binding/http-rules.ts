/**
 * `policy.httpRules`: method and path globs. The first match applies; if there are rules, a request
 * that matches none is denied.
 */
import { isAmbiguousPath } from "../providers/url-path.ts";
import type { BindingSpec } from "../resources/binding-spec.ts";
import { compilePathGlobs } from "./path-glob.ts";

export type RuleVerdict =
  /** `byRule`: a rule allows it; else there are no rules. */
  | { readonly kind: "allowed"; readonly byRule?: true }
  | { readonly kind: "denied"; readonly rule: string };

export type HttpRules = (method: string, path: string) => RuleVerdict;

export function compileHttpRules(rules: BindingSpec["policy"]["httpRules"]): HttpRules {
  if (rules.length === 0) return () => ({ kind: "allowed" });
  const compiled = rules.map((rule, index) => {
    const covers = compilePathGlobs(rule.paths, false);
    const methods = rule.methods.includes("*") ? undefined : new Set(rule.methods);
    return {
      action: rule.action,
      name:
        `policy.httpRules[${index}]: ${rule.action} ${rule.methods.join(",")} ` +
        rule.paths.join(" "),
      matches: (method: string, path: string) =>
        (methods === undefined || methods.has(method)) && covers(path) !== undefined,
    };
  });
  return (method, path) => {
    if (isAmbiguousPath(path))
      return { kind: "denied", rule: "policy.httpRules: the path is ambiguous" };
    const rule = compiled.find((each) => each.matches(method, path));
    if (rule === undefined) return { kind: "denied", rule: "policy.httpRules: no rule matches" };
    return rule.action === "allow"
      ? { kind: "allowed", byRule: true }
      : { kind: "denied", rule: rule.name };
  };
}
