/**
 * Resolves lists of guards: GuardBindings of a namespace, with overrides that can only tighten
 * them. Pure.
 */
import type { ClassifierPolicy, GuardPolicy } from "../policy/snapshot.ts";
import type { Reason } from "../policy/status.ts";
import type { Agent } from "../resources/agent.ts";
import type { GuardBinding } from "../resources/guard-binding.ts";
import type { GuardItem, GuardScan } from "../resources/guard-list.ts";
import type { GuardSpecs } from "../resources/guard-spec.ts";
import { keyOf } from "../resources/metadata.ts";
import { type Env, isEnvSet } from "./policy-secrets.ts";

/** A list of guards, and where it is written. */
export interface GuardList {
  /** For people, such as `spec.guards`. */
  readonly place: string;
  readonly items: readonly GuardItem[];
}

/** The bindings that lists can name. */
export interface GuardScope {
  /** By `<namespace>/<name>`. */
  readonly bindings: ReadonlyMap<string, GuardBinding>;
  readonly env: Env;
}

/** A defect of a list of guards. */
export interface GuardProblem {
  /**
   * `UnknownGuardBinding`: the calls are denied. `RelaxedGuard`: the override is rejected, and the
   * binding's own enforcement is in force.
   */
  readonly reason: Extract<Reason, "UnknownGuardBinding" | "RelaxedGuard">;
  /** Name of the GuardBinding. */
  readonly binding: string;
  /** The defect, without the fix and a final period. */
  readonly fact: string;
  /** For people, with the fix. */
  readonly message: string;
}

/** A guard in force. */
export interface ResolvedGuard {
  readonly binding: GuardBinding;
  /** The strictest of the binding's and those of the lists. */
  readonly enforcement: "enforce" | "audit";
  /** Everything that one of the lists scans. */
  readonly scan: GuardScan;
}

export interface ResolvedGuards {
  /** One for each binding, in the order in which the lists name them. */
  readonly guards: readonly ResolvedGuard[];
  /** Those that deny calls come first. */
  readonly problems: readonly GuardProblem[];
}

const NONE: ResolvedGuards = { guards: [], problems: [] };

/** Resolves lists that apply to the same calls. */
export function resolveGuards(
  namespace: string,
  lists: readonly GuardList[],
  scope: GuardScope,
): ResolvedGuards {
  if (lists.every(({ items }) => items.length === 0)) return NONE;
  const guards = new Map<string, ResolvedGuard>();
  const unknown: GuardProblem[] = [];
  const relaxed: GuardProblem[] = [];
  for (const { place, items } of lists) {
    for (const [index, { binding: name, enforcement, scan }] of items.entries()) {
      const found = bindingOf({ namespace, name }, scope);
      if (found.kind === "absent") {
        const fact = `${place}[${index}]: ${found.fact}`;
        const message = `${fact}. ${found.fix}`;
        unknown.push({ reason: "UnknownGuardBinding", binding: name, fact, message });
        continue;
      }
      const { binding } = found;
      const own = binding.spec.enforcement;
      if (enforcement === "audit" && own === "enforce") {
        const fact =
          `${place}[${index}].enforcement: "audit" would relax the GuardBinding ${name}, which ` +
          "enforces";
        const message = `${fact}. Remove it; an override can only tighten a binding.`;
        relaxed.push({ reason: "RelaxedGuard", binding: name, fact, message });
      }
      const strictest = own === "enforce" ? own : (enforcement ?? own);
      const before = guards.get(name);
      guards.set(
        name,
        before === undefined
          ? { binding, enforcement: strictest, scan }
          : {
              binding,
              enforcement: before.enforcement === "enforce" ? "enforce" : strictest,
              scan: union(before.scan, scan),
            },
      );
    }
  }
  return { guards: [...guards.values()], problems: [...unknown, ...relaxed] };
}

type FoundBinding =
  | { readonly kind: "found"; readonly binding: GuardBinding }
  | { readonly kind: "absent"; readonly fact: string; readonly fix: string };

function bindingOf(
  key: { readonly namespace: string; readonly name: string },
  { bindings, env }: GuardScope,
): FoundBinding {
  const { namespace, name } = key;
  const binding = bindings.get(keyOf(key));
  if (binding === undefined)
    return {
      kind: "absent",
      fact: `there is no GuardBinding ${name} in the namespace ${namespace}`,
      fix: "Create it, or correct the name.",
    };
  const { whenEnv } = binding;
  if (whenEnv === undefined || isEnvSet(env, whenEnv)) return { kind: "found", binding };
  // Unlike other objects: a guard is not optional for those who name it.
  return {
    kind: "absent",
    fact:
      `the GuardBinding ${name} is skipped, because the environment variable ${whenEnv} is not ` +
      "set",
    fix: "Set it, or remove the guard.",
  };
}

function union(a: GuardScan, b: GuardScan): GuardScan {
  const tools = new Set([...(a.toolResults?.tools ?? []), ...(b.toolResults?.tools ?? [])]);
  return {
    prompts: a.prompts || b.prompts,
    responses: a.responses || b.responses,
    ...(tools.size === 0 ? {} : { toolResults: { tools: [...tools] } }),
  };
}

/** Resolves the guards of an Agent. */
export function guardsOfAgent(agent: Agent, scope: GuardScope): ResolvedGuards {
  return resolveGuards(
    agent.namespace,
    [{ place: "spec.guards", items: agent.spec.guards ?? [] }],
    scope,
  );
}

/** Returns the content of an Agent's ConfigMap of guards. */
export function guardSpecsOf(agent: Agent, { guards }: ResolvedGuards): GuardSpecs {
  return {
    version: 1,
    workload: keyOf(agent),
    guards: guards.map(({ binding, enforcement, scan }) => {
      const { classifier, thresholds, timeoutMs, audit } = binding.spec;
      return { binding: binding.name, classifier, thresholds, enforcement, timeoutMs, audit, scan };
    }),
  };
}

/** Returns the policy of a guard. */
export function guardPolicy(
  { binding, enforcement, scan }: ResolvedGuard,
  classifier: ClassifierPolicy,
): GuardPolicy {
  const { thresholds, timeoutMs, audit } = binding.spec;
  const tools = scan.toolResults?.tools ?? [];
  return {
    binding: binding.name,
    classifier,
    thresholds,
    enforcement,
    timeoutMs,
    maxPayloadChars: audit.savePayload ? audit.maxPayloadChars : undefined,
    scan: {
      prompts: scan.prompts,
      responses: scan.responses,
      toolResults: tools.length === 0 ? "none" : tools.includes("*") ? "all" : new Set(tools),
    },
  };
}
