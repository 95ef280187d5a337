/**
 * Judges a request at the sidecar: five checks, in order. It is pure: nothing is recorded, looked
 * up or sent.
 *
 * 1. The host determines the Providers of a request. A request to an unbound host is refused, and
 *    so is a request that the Provider's service might interpret in another way than the proxy.
 * 2. `policy.httpRules`, on method and path as on the wire.
 * 3. The plugin determines the actions of the request. A request that it cannot resolve is a
 *    violation: in doubt, deny.
 * 4. `policy.deny`, then `policy.allow`, for every action.
 *    Then `policy.mcp`, for every item of an MCP server.
 * 5. `spec.scope`, for every resource that the request touches.
 *
 * In enforce mode the evaluation ends at the first violation; in audit mode every check runs. Where
 * a host has several Providers, each judges the request: see {@link strongest}.
 */
import { clientText } from "../platform/client-text.ts";
import type { ActionResolution, ServiceRequest } from "../providers/contract.ts";
import type { Binding, BindingSnapshot } from "./binding.ts";
import { disguisedCredential, oddHeader } from "./disguised.ts";
import { asksForAnother } from "./rewriting.ts";
import type {
  Denied,
  Findings,
  ServicePermit,
  ServiceRefusal,
  ServiceVerdict,
  Violation,
} from "./verdict.ts";

export function judge(request: ServiceRequest, snapshot: BindingSnapshot): ServiceVerdict {
  const bindings = snapshot.bindingsOf(request.host);
  if (bindings.length === 0) {
    const message = `The host ${request.host} is not bound to a Provider of ${snapshot.workload}.`;
    return refused(undefined, { status: 403, code: "unknown_host", message });
  }
  const claiming = bindings.filter(({ instance }) => instance.claims?.(request) === true);
  const judging = claiming.length > 0 ? claiming : bindings;
  for (const binding of bindings) {
    const message =
      ambiguityOf(request, binding) ??
      (claiming.includes(binding) ? binding.instance.misread?.(request) : undefined);
    if (message !== undefined) {
      return refused(binding, { status: 400, code: "malformed_request", message });
    }
  }
  return strongest(judging.map((binding) => judgePolicy(request, binding)));
}

/**
 * Returns the verdict of several bindings of a host: the first permit without violations, else the
 * first permit of a binding in audit mode, else a denial that names all bindings.
 */
function strongest(verdicts: readonly ServiceVerdict[]): ServiceVerdict {
  const permits = verdicts.filter((verdict) => verdict.kind === "permitted");
  const permit = permits.find(({ violations }) => violations.length === 0) ?? permits[0];
  if (permit !== undefined) return permit;
  const [first, ...others] = verdicts.filter((verdict) => verdict.kind === "denied");
  if (first === undefined) throw new Error("a host's bindings give a verdict");
  return { ...first, others };
}

function refused(binding: Binding | undefined, refusal: ServiceRefusal): Denied {
  return { kind: "denied", binding, resolution: undefined, violations: [], refusal, others: [] };
}

/** Returns why the service might interpret the request in another way than the proxy. */
function ambiguityOf(request: ServiceRequest, { plugin }: Binding): string | undefined {
  const odd = oddHeader(request.headers);
  if (odd !== undefined) return oddHeaderMessage(odd);
  return asksForAnother(request) ?? disguisedCredential(request, plugin);
}

function oddHeaderMessage(name: string): string {
  const shown = name.replaceAll(/[^!-~]/g, "?").slice(0, 64);
  return (
    `The name of the header ${shown} contains characters besides letters, digits and ` +
    "hyphens, which servers interpret differently. Omit it, or use hyphens."
  );
}

/** A check of the request's actions. */
type ActionCheck = (resolution: ActionResolution, binding: Binding) => readonly Violation[];

const ACTION_CHECKS: readonly ActionCheck[] = [
  checkResolved,
  checkActionLists,
  checkItems,
  checkScope,
];

function judgePolicy(request: ServiceRequest, binding: Binding): ServiceVerdict {
  const enforces = binding.policy.enforcement !== "audit";
  let violations = checkHttpRules(request, binding);
  const isOver = (): boolean => enforces && violations.length > 0;
  if (isOver()) return denied({ binding, resolution: undefined, violations });
  const resolution = binding.instance.resolveAction(request);
  violations = violations.concat(checkOnlyByRule(request, resolution, binding));
  if (isOver()) return denied({ binding, resolution, violations });
  for (const check of ACTION_CHECKS) {
    violations = violations.concat(check(resolution, binding));
    if (isOver()) return denied({ binding, resolution, violations });
  }
  return permit({ binding, resolution, violations });
}

function denied(findings: Findings): Denied {
  return { ...findings, kind: "denied", refusal: undefined, others: [] };
}

/** The only place that makes a permit. */
function permit(findings: Findings & { readonly binding: Binding }): ServicePermit {
  return { ...findings, kind: "permitted" } as ServicePermit;
}

function checkHttpRules({ method, path }: ServiceRequest, binding: Binding): readonly Violation[] {
  const verdict = binding.policy.httpRules(method, path);
  if (verdict.kind !== "denied") return [];
  const message = `${method} on this path is not allowed for ${binding.name}.`;
  return [{ code: "http_rule", rule: verdict.rule, message }];
}

/** Requests that only a rule can allow, such as those beside the endpoint of an MCP server. */
function checkOnlyByRule(
  { method, path }: ServiceRequest,
  resolution: ActionResolution,
  { name, policy }: Binding,
): readonly Violation[] {
  if (resolution.kind !== "resolved" || resolution.onlyByRule !== true) return [];
  const verdict = policy.httpRules(method, path);
  if (verdict.kind === "denied" || verdict.byRule === true) return [];
  const message =
    `The MCP server ${name} may be called at its own path only, unless policy.httpRules has a ` +
    "rule that allows another one.";
  return [{ code: "http_rule", rule: "policy.httpRules: no rule allows the path", message }];
}

function checkResolved(resolution: ActionResolution): readonly Violation[] {
  if (resolution.kind === "resolved") return [];
  const sentences = [resolution.reason, resolution.hint ?? ""].filter(Boolean).map(sentence);
  return [
    {
      code: "unresolved_action",
      rule: "the action cannot be determined",
      message: sentences.join(" "),
    },
  ];
}

/** Plugins' reasons may or may not end with a full stop. */
function sentence(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`;
}

function checkActionLists(
  resolution: ActionResolution,
  { name, policy: { actions } }: Binding,
): readonly Violation[] {
  if (resolution.kind !== "resolved") return [];
  return resolution.actions.flatMap(({ action, broader }): Violation[] => {
    const verdict = actions.judge(action, broader);
    if (verdict.kind === "allowed") return [];
    return [
      {
        code: "action_denied",
        rule: verdict.rule,
        message: `The action ${action} is not allowed for ${name}.`,
        action,
        ...(actions.allow === undefined ? {} : { allowed: actions.allow }),
      },
    ];
  });
}

/** The list of `policy.mcp` that denies an item. */
const ITEM_LISTS = {
  tools: { one: "tool", denied: "deniedTools", allowed: "allowedTools" },
  prompts: { one: "prompt", denied: "deniedPrompts", allowed: "allowedPrompts" },
  resources: { one: "resource", denied: "deniedResources", allowed: "allowedResources" },
} as const;

/** `policy.mcp`, for every item of an MCP server. */
function checkItems(
  resolution: ActionResolution,
  { name: binding, policy }: Binding,
): readonly Violation[] {
  if (resolution.kind !== "resolved") return [];
  return resolution.actions.flatMap(({ action, item }): Violation[] => {
    if (item === undefined) return [];
    const lists = ITEM_LISTS[item.kind];
    const denial = policy.items === undefined ? "denied" : policy.items.deny(item.kind, item.name);
    if (denial === undefined) return [];
    const rule = {
      denied: `policy.mcp.${lists.denied}`,
      "not-allowed": `policy.mcp.${lists.allowed}: not on the list`,
      "unclear-name": `policy.mcp.${lists.denied}: the name resembles others`,
    }[denial];
    const message =
      `The ${lists.one} ${clientText(item.name)} is not allowed by the policy of the MCP ` +
      `server ${binding}.`;
    return [{ code: "tool_not_allowed", rule, message, action, resource: item.name }];
  });
}

function checkScope(resolution: ActionResolution, { name, policy }: Binding): readonly Violation[] {
  if (resolution.kind !== "resolved") return [];
  return resolution.actions.flatMap(({ action, resources }): Violation[] => {
    const verdict = policy.scope(resources);
    if (verdict.kind === "inside") return [];
    const { rule, resource } = verdict;
    return [
      {
        code: "out_of_scope",
        rule,
        message:
          resource === ""
            ? `The resources of ${action} here are outside the scope of ${name}.`
            : `${resource} is outside the scope of ${name}.`,
        action,
        ...(resource === "" ? {} : { resource }),
      },
    ];
  });
}
