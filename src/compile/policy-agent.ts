/** An Agent's part of the policy: its grants, in maps that are built on first use. */
import type {
  AgentLimits,
  AgentPolicy,
  GuardPolicy,
  ModelGrant,
  ModelResolution,
  ModelProviderPolicy,
} from "../policy/snapshot.ts";
import { type Agent, runsAsRoot } from "../resources/agent.ts";
import { keyOf } from "../resources/metadata.ts";
import { covers, intersect, isPattern, splitModelRef } from "../resources/model-names.ts";
import type { CallerGuards } from "./policy-guards.ts";

/**
 * The scope in which an agent's references are resolved: the ModelProviders of its namespace, by
 * name.
 */
export interface ProviderScope {
  /** In use. */
  readonly ready: ReadonlyMap<string, ScopedProvider>;
  /** Known, but not in use: broken or skipped. */
  readonly notReady: ReadonlySet<string>;
  /** Models that some provider in use lists by name. */
  readonly listedModels: ReadonlySet<string>;
}

export interface ScopedProvider {
  readonly policy: ModelProviderPolicy;
  /** Its `allowedModels`; `["*"]` if it has none. */
  readonly allowed: readonly string[];
  readonly denied: readonly string[];
}

interface Lookup {
  readonly grants: readonly ModelGrant[];
  /** By `<provider>/<model>`. */
  readonly byRef: ReadonlyMap<string, ModelGrant>;
  /** By bare model name. */
  readonly byModel: ReadonlyMap<string, readonly ModelGrant[]>;
  /** Prefixes before the `*` of wildcard references. */
  readonly wildcards: readonly { readonly prefix: string; readonly scoped: ScopedProvider }[];
}

/**
 * Resolves a name: first as `<provider>/<model>`, split at its first slash; if that is not granted,
 * as a bare model name, since model names may contain slashes. Among bare names, a model that the
 * agent lists by name takes precedence over one that only a wildcard covers. A wildcard covers a
 * bare name with a slash only if its prefix contains that first part, so that `openai/x` is never
 * resolved to a model `openai/x` of `other/*`.
 */
export class CompiledAgent implements AgentPolicy {
  readonly kind = "agent";
  readonly namespace: string;
  readonly name: string;
  readonly workload: string;
  readonly guards: readonly GuardPolicy[];
  readonly limits: AgentLimits;
  readonly #refs: readonly string[];
  readonly #scope: ProviderScope;
  /** Why every call is denied; undefined if they are not. */
  readonly #denied: string | undefined;
  #built: Lookup | undefined;

  constructor(agent: Agent, scope: ProviderScope, guards: CallerGuards) {
    this.namespace = agent.namespace;
    this.name = agent.name;
    this.workload = keyOf(agent);
    this.limits = limitsOf(agent.spec.rateLimits);
    this.guards = guards.policies;
    this.#denied = runsAsRoot(agent) ? "its spec.runAsUser must not be 0" : guards.denied;
    this.#refs = this.#denied === undefined ? agent.spec.models : [];
    this.#scope = scope;
  }

  /**
   * Wildcards are narrowed to the models that the provider exposes; an open wildcard has a `model`
   * that ends in `*`.
   */
  get grants(): readonly ModelGrant[] {
    return this.#lookup.grants;
  }

  resolveModel(model: string): ModelResolution {
    if (this.#denied !== undefined)
      return denied(`Agent ${this.name} is not in use: ${this.#denied}`);
    const { byRef } = this.#lookup;
    const exact = byRef.get(model);
    if (exact !== undefined) return granted(exact);
    // A pattern cannot be requested, and no model has an empty name.
    if (model === "" || model.includes("*")) return { kind: "unknown" };
    const asRef = this.#resolveRef(model);
    if (asRef?.kind === "granted") return asRef;
    const asBare = this.#resolveBare(model);
    if (asBare.kind === "granted" || asBare.kind === "ambiguous") return asBare;
    return asRef ?? asBare;
  }

  /** Returns undefined if the name has no provider part. */
  #resolveRef(ref: string): ModelResolution | undefined {
    const parts = splitModelRef(ref);
    if (parts === undefined) return undefined;
    const { provider, model } = parts;
    const scoped = this.#scope.ready.get(provider);
    if (scoped === undefined) {
      return this.#scope.notReady.has(provider)
        ? denied(`ModelProvider ${provider} is not ready`)
        : undefined;
    }
    if (!scoped.policy.allowsModel(model))
      return denied(`ModelProvider ${provider} does not expose model ${model}`);
    const covered = this.#lookup.wildcards.some(
      (wildcard) => wildcard.scoped === scoped && model.startsWith(wildcard.prefix),
    );
    return covered
      ? granted({ ref, provider: scoped.policy, model })
      : denied(`Agent ${this.name} may not use ${ref}`);
  }

  #resolveBare(model: string): ModelResolution {
    const { byModel, wildcards } = this.#lookup;
    const exact = byModel.get(model) ?? [];
    if (exact.length > 0) return pick(exact);
    const head = model.slice(0, model.indexOf("/") + 1);
    const providers = new Set<ModelProviderPolicy>();
    let refusing: ModelProviderPolicy | undefined;
    for (const { prefix, scoped } of wildcards) {
      if (!model.startsWith(prefix) || !prefix.startsWith(head)) continue;
      if (scoped.policy.allowsModel(model)) providers.add(scoped.policy);
      else if (scoped.denied.some((deny) => covers(deny, model))) refusing = scoped.policy;
    }
    if (providers.size > 0)
      return pick(
        [...providers].map((provider) => ({ ref: `${provider.name}/${model}`, provider, model })),
      );
    if (refusing !== undefined)
      return denied(`ModelProvider ${refusing.name} does not expose model ${model}`);
    if (this.#scope.listedModels.has(model))
      return denied(`Agent ${this.name} may not use ${model}`);
    // Listed by the agent, but not granted: its provider is not ready, or does not expose it.
    const listed = this.#refs.find((ref) => splitModelRef(ref)?.model === model);
    return (listed === undefined ? undefined : this.#resolveRef(listed)) ?? { kind: "unknown" };
  }

  get #lookup(): Lookup {
    this.#built ??= buildLookup(this.#refs, this.#scope);
    return this.#built;
  }
}

function limitsOf(limits: Agent["spec"]["rateLimits"]): AgentLimits {
  const usd = limits?.maxCostPerDayUSD;
  return {
    requestsPerMinute: limits?.requestsPerMinute,
    maxConcurrentRequests: limits?.maxConcurrentRequests,
    maxTokensPerDay: limits?.maxTokensPerDay,
    maxTokensPerRequest: limits?.maxTokensPerRequest,
    maxMicroUsdPerDay: usd === undefined ? undefined : Math.round(usd * 1_000_000),
  };
}

function buildLookup(refs: readonly string[], scope: ProviderScope): Lookup {
  const grants = new Map<string, ModelGrant>();
  const byModel = new Map<string, ModelGrant[]>();
  const wildcards: { prefix: string; scoped: ScopedProvider }[] = [];
  for (const ref of new Set(refs)) {
    const parts = splitModelRef(ref);
    const scoped = parts === undefined ? undefined : scope.ready.get(parts.provider);
    if (parts === undefined || scoped === undefined) continue;
    const provider = scoped.policy;
    if (isPattern(parts.model)) {
      wildcards.push({ prefix: parts.model.slice(0, -1), scoped });
      for (const model of narrow(parts.model, scoped))
        add({ ref: `${provider.name}/${model}`, provider, model });
    } else if (provider.allowsModel(parts.model)) {
      const grant = { ref, provider, model: parts.model };
      add(grant);
      const same = byModel.get(grant.model);
      if (same === undefined) byModel.set(grant.model, [grant]);
      else same.push(grant);
    }
  }
  function add(grant: ModelGrant): void {
    if (!grants.has(grant.ref)) grants.set(grant.ref, grant);
  }
  const byRef = new Map([...grants].filter(([, grant]) => !isPattern(grant.model)));
  return { grants: [...grants.values()], byRef, byModel, wildcards };
}

/** Returns the models of a wildcard that the provider exposes: names, and remaining wildcards. */
function narrow(pattern: string, { allowed, denied: deniedModels }: ScopedProvider): string[] {
  const exposed = allowed.flatMap((entry) => intersect(pattern, entry) ?? []);
  return [...new Set(exposed)].filter((entry) => !deniedModels.some((deny) => covers(deny, entry)));
}

function pick(grants: readonly ModelGrant[]): ModelResolution {
  const [first] = grants;
  if (first === undefined) return { kind: "unknown" };
  return grants.length === 1
    ? granted(first)
    : { kind: "ambiguous", candidates: grants.map((grant) => grant.ref) };
}

function granted(grant: ModelGrant): ModelResolution {
  return { kind: "granted", grant };
}

function denied(reason: string): ModelResolution {
  return { kind: "denied", reason };
}
