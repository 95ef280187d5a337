/**
 * The guards of all callers, and the statuses of GuardBindings. A caller that names a binding that
 * does not exist is denied every call, so that a mistake never switches a guard off.
 */
import type { GuardPolicy, ModelProviderPolicy } from "../policy/snapshot.ts";
import type { Reason } from "../policy/status.ts";
import type { AccessKey } from "../resources/access-key.ts";
import type { Agent } from "../resources/agent.ts";
import type { GuardBinding } from "../resources/guard-binding.ts";
import { keyOf } from "../resources/metadata.ts";
import type { ModelProvider } from "../resources/model-provider.ts";
import type { ResourceSet } from "../resources/resource-set.ts";
import {
  type ClassifierOptions,
  type CompiledClassifier,
  compileClassifier,
} from "./classifiers.ts";
import {
  type GuardList,
  guardPolicy,
  type GuardProblem,
  guardsOfAgent,
  type ResolvedGuards,
  resolveGuards,
} from "./guards.ts";

/** The guards of a caller. */
export interface CallerGuards {
  readonly policies: readonly GuardPolicy[];
  /** Why every call is denied; undefined if they are not. */
  readonly denied: string | undefined;
  /** Defects of the lists that apply to it, its own or others. */
  readonly problems: readonly GuardProblem[];
  /** Equal texts mean equal guards; contains no secret. */
  readonly mark: string;
}

/** Guards of a caller that has none. */
export const NO_GUARDS: CallerGuards = {
  policies: [],
  denied: undefined,
  problems: [],
  mark: "",
};

/** The verdict on a GuardBinding. */
export interface GuardVerdict {
  readonly ready: boolean;
  readonly reason: Reason;
  readonly message: string;
}

export class PolicyGuards {
  readonly #resources: ResourceSet;
  readonly #options: ClassifierOptions;
  readonly #classifiers = new Map<GuardBinding, CompiledClassifier>();
  /** By `<namespace>/<name>` of the GuardBinding: who would relax it. */
  readonly #relaxing = new Map<string, string[]>();

  constructor(resources: ResourceSet, options: ClassifierOptions) {
    this.#resources = resources;
    this.#options = options;
  }

  /** Returns the guards of an Agent's calls. */
  ofAgent(agent: Agent): CallerGuards {
    if ((agent.spec.guards ?? []).length === 0) return NO_GUARDS;
    return this.#judged(agent, guardsOfAgent(agent, this.#scope));
  }

  /**
   * Returns the guards of an AccessKey's calls: those of its ModelProvider, of the fallbacks that
   * external callers can reach, and its own.
   *
   * @param provider its ModelProvider; undefined if that is not in use
   * @param isReachable whether external callers can reach a ModelProvider
   */
  ofKey(
    key: AccessKey,
    provider: ModelProviderPolicy | undefined,
    isReachable: (provider: string) => boolean,
  ): CallerGuards {
    const { namespace, spec } = key;
    const own = spec.guards ?? [];
    const fallbacks = provider?.fallbacks.map((fallback) => fallback.provider) ?? [];
    const reached = provider === undefined ? [] : [provider.key, ...fallbacks.filter(isReachable)];
    const lists = [...new Set(reached)]
      .flatMap((reachable) => this.#resources.modelProviders.get(reachable) ?? [])
      .map((reachable): GuardList => {
        const { place, items } = externalGuards(reachable);
        return { place: `ModelProvider ${reachable.name}: ${place}`, items };
      });
    const list: GuardList = { place: "spec.guards", items: own };
    const ofProviders = resolveGuards(namespace, lists, this.#scope);
    const ofKey = resolveGuards(namespace, [list], this.#scope);
    this.#judge(key, ofKey);
    const { guards, problems } = resolveGuards(namespace, [...lists, list], this.#scope);
    return this.#compiled({
      guards,
      problems: [
        ...problems.filter(isDenial),
        // An override of a ModelProvider that was rejected is that one's to report.
        ...ofKey.problems.filter((problem) => !isDenial(problem)),
        ...relaxations(list, ofProviders),
      ],
    });
  }

  /** Returns what is wrong with the guards that a ModelProvider has for calls from outside. */
  problemsOf(provider: ModelProvider): readonly GuardProblem[] {
    const list = externalGuards(provider);
    if (list.items.length === 0 || !provider.spec.externalAccess.enabled) return [];
    const resolved = resolveGuards(provider.namespace, [list], this.#scope);
    this.#judge(provider, resolved);
    return resolved.problems;
  }

  /** Returns the verdict on a binding. It is complete once every caller was compiled. */
  verdictOn(binding: GuardBinding): GuardVerdict {
    const {
      policy: { problem },
      reason,
    } = this.#classifierOf(binding);
    const relaxing = this.#relaxing.get(keyOf(binding)) ?? [];
    const messages = [
      ...(problem === undefined
        ? []
        : [`${problem}; until then its guards forward every call as unavailable`]),
      ...(relaxing.length === 0
        ? []
        : [
            `"enforcement: audit" would relax it, and is rejected: ${relaxing.join(", ")}; it ` +
              "enforces for them too",
          ]),
    ];
    return {
      ready: messages.length === 0,
      reason: problem === undefined && relaxing.length > 0 ? "RelaxedGuard" : reason,
      message: messages.join("; "),
    };
  }

  get #scope() {
    return { bindings: this.#resources.guardBindings, env: this.#options.env };
  }

  #judged(holder: Agent, resolved: ResolvedGuards): CallerGuards {
    this.#judge(holder, resolved);
    return this.#compiled(resolved);
  }

  /** Remembers which bindings a list would relax. */
  #judge(
    { kind, namespace, name }: Agent | AccessKey | ModelProvider,
    { problems }: ResolvedGuards,
  ) {
    for (const { reason, binding } of problems) {
      if (reason !== "RelaxedGuard") continue;
      const key = keyOf({ namespace, name: binding });
      const known = this.#relaxing.get(key) ?? [];
      known.push(`${kind} ${name}`);
      this.#relaxing.set(key, known);
    }
  }

  #compiled({ guards, problems }: ResolvedGuards): CallerGuards {
    const denied = problems.find(isDenial);
    if (guards.length === 0 && denied === undefined) return NO_GUARDS;
    const policies = guards.map((guard) =>
      guardPolicy(guard, this.#classifierOf(guard.binding).policy),
    );
    return {
      policies,
      denied: denied?.fact,
      problems,
      mark: JSON.stringify([
        denied?.fact ?? null,
        guards.map(({ enforcement, scan }) => [enforcement, scan]),
        policies.map(({ classifier }) => [classifier.id, classifier.problem ?? null]),
      ]),
    };
  }

  #classifierOf(binding: GuardBinding): CompiledClassifier {
    let found = this.#classifiers.get(binding);
    if (found === undefined) {
      found = compileClassifier(binding, this.#resources, this.#options);
      this.#classifiers.set(binding, found);
    }
    return found;
  }
}

function isDenial({ reason }: GuardProblem): boolean {
  return reason === "UnknownGuardBinding";
}

/** Returns the items of a key that would relax what its ModelProviders have tightened. */
function relaxations({ place, items }: GuardList, { guards }: ResolvedGuards): GuardProblem[] {
  return items.flatMap(({ binding: name, enforcement }, index): GuardProblem[] => {
    const found = guards.find(({ binding }) => binding.name === name);
    const isTightened =
      found?.enforcement === "enforce" && found.binding.spec.enforcement === "audit";
    if (enforcement !== "audit" || !isTightened) return [];
    const fact =
      `${place}[${index}].enforcement: "audit" would relax the guard ${name}, which the ` +
      "ModelProvider's externalAccess.guards enforces";
    const message = `${fact}. Remove it; an override can only tighten.`;
    return [{ reason: "RelaxedGuard", binding: name, fact, message }];
  });
}

function externalGuards({ spec }: ModelProvider): GuardList {
  return { place: "spec.externalAccess.guards", items: spec.externalAccess.guards ?? [] };
}
