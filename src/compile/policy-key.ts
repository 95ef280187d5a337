/** An AccessKey's part of the policy: one ModelProvider or one MCP server, narrowed. */
import { compileCidrs } from "../platform/cidr.ts";
import type {
  AccessKeyPolicy,
  GuardPolicy,
  McpGrant,
  ModelGrant,
  ModelResolution,
} from "../policy/snapshot.ts";
import type { AccessKey, AccessKeySpec } from "../resources/access-key.ts";
import { compilePatterns, covers, intersect, isPattern } from "../resources/model-names.ts";
import { listsOfKey } from "./mcp-servers.ts";
import type { ScopedProvider } from "./policy-agent.ts";
import type { CallerGuards } from "./policy-guards.ts";

/**
 * A model is named alone, or with the provider's name as a prefix. Model names may contain slashes,
 * so a model that the provider exposes under the whole name takes precedence.
 */
export class CompiledKey implements AccessKeyPolicy {
  readonly kind = "key";
  readonly namespace: string;
  readonly name: string;
  readonly workload: string;
  readonly guards: readonly GuardPolicy[];
  readonly revoked: boolean;
  readonly expiresAt: number | undefined;
  readonly providerKey: string;
  readonly mcp: McpGrant | undefined;
  readonly limits: AccessKeyPolicy["limits"];
  readonly #scoped: ScopedProvider | undefined;
  /** Why every call is denied; undefined if they are not. */
  readonly #denied: string | undefined;
  readonly #providerName: string;
  readonly #allowed: readonly string[] | undefined;
  readonly #allows: (model: string) => boolean;
  readonly #inside: ((address: string) => boolean) | undefined;

  /** @param scoped its ModelProvider; undefined if that is not in use */
  constructor(
    { namespace, name, spec }: AccessKey,
    scoped: ScopedProvider | undefined,
    guards: CallerGuards,
  ) {
    const { allowedModels, allowedCIDRs } = spec.restrictions;
    this.namespace = namespace;
    this.name = name;
    this.workload = `ext:${name}`;
    this.revoked = spec.revoked;
    this.expiresAt = spec.expiresAt === undefined ? undefined : Date.parse(spec.expiresAt);
    this.#providerName = spec.modelProvider ?? "";
    this.providerKey = `${namespace}/${this.#providerName}`;
    this.mcp =
      spec.provider === undefined
        ? undefined
        : {
            provider: spec.provider,
            server: `${namespace}/${spec.provider}`,
            lists: listsOfKey(spec),
          };
    this.limits = {
      maxTokensPerDay: spec.limits.maxTokensPerDay,
      maxRequestsPerDay: spec.limits.maxRequestsPerDay,
      requestsPerMinute: spec.limits.requestsPerMinute,
    };
    this.#scoped = scoped;
    this.guards = guards.policies;
    this.#denied = guards.denied;
    this.#allowed = allowedModels;
    this.#allows = compilePatterns(allowedModels ?? ["*"]);
    this.#inside = allowedCIDRs === undefined ? undefined : compileCidrs(allowedCIDRs);
  }

  /** Models that can be requested by name; an open wildcard has a `model` that ends in `*`. */
  get grants(): readonly ModelGrant[] {
    const scoped = this.#scoped;
    if (scoped === undefined || this.#denied !== undefined) return [];
    const exposed = scoped.allowed.filter(
      (entry) => !scoped.denied.some((deny) => covers(deny, entry)),
    );
    const own = this.#allowed ?? ["*"];
    const models = new Set(
      own.flatMap((entry) => exposed.flatMap((other) => intersect(entry, other) ?? [])),
    );
    return [...models]
      .filter((model) => !scoped.denied.some((deny) => covers(deny, model)))
      .map((model) => this.#grant(scoped, model));
  }

  allowsAddress(address: string): boolean {
    return this.#inside === undefined || this.#inside(address);
  }

  allowsModel(model: string): boolean {
    return this.#allows(model);
  }

  resolveModel(model: string): ModelResolution {
    if (this.mcp !== undefined) {
      const { provider } = this.mcp;
      const reason = `AccessKey ${this.name} is for the Provider ${provider}, not for models`;
      return { kind: "denied", reason };
    }
    if (this.#denied !== undefined) {
      const reason = `AccessKey ${this.name} is not in use: ${this.#denied}`;
      return { kind: "denied", reason };
    }
    const scoped = this.#scoped;
    if (scoped === undefined)
      return { kind: "denied", reason: `ModelProvider ${this.#providerName} is not ready` };
    // A pattern cannot be requested, and no model has an empty name.
    if (model === "" || model.includes("*")) return { kind: "unknown" };
    const prefix = `${this.#providerName}/`;
    const bare = model.startsWith(prefix) ? model.slice(prefix.length) : undefined;
    const name = [model, bare].find(
      (candidate) =>
        candidate !== undefined &&
        candidate !== "" &&
        scoped.policy.allowsModel(candidate) &&
        this.#allows(candidate),
    );
    if (name !== undefined) return { kind: "granted", grant: this.#grant(scoped, name) };
    const asked = bare ?? model;
    if (!scoped.policy.allowsModel(asked)) {
      return {
        kind: "denied",
        reason: `ModelProvider ${this.#providerName} does not expose model ${asked}`,
      };
    }
    return { kind: "denied", reason: `AccessKey ${this.name} may not use model ${asked}` };
  }

  #grant({ policy }: ScopedProvider, model: string): ModelGrant {
    return { ref: `${policy.name}/${model}`, provider: policy, model };
  }
}

/**
 * Returns the entries of a key's `allowedModels` of which its ModelProvider exposes nothing, and
 * none of its fallbacks is for; they never widen its access.
 */
export function idleRestrictions(
  { restrictions }: AccessKeySpec,
  scoped: ScopedProvider,
): string[] {
  const { fallbacks } = scoped.policy;
  return (restrictions.allowedModels ?? []).filter((model) => {
    const allows = compilePatterns([model]);
    if (fallbacks.some((fallback) => fallback.model !== undefined && allows(fallback.model))) {
      return false;
    }
    if (!isPattern(model)) return !scoped.policy.allowsModel(model);
    return !scoped.allowed.some((entry) => {
      const both = intersect(model, entry);
      return both !== undefined && !scoped.denied.some((deny) => covers(deny, both));
    });
  });
}
