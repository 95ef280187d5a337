/**
 * The verdicts and plans of all Agents, by the newest load of resources. An Agent is planned anew
 * only if something has changed on which its plan depends, so that an edit costs as much as it
 * changes, however many Agents there are.
 */
import type { Compiled } from "../compile/compile.ts";
import type { KubeObject } from "../kubernetes/objects.ts";
import type { ObjectStatus } from "../policy/status.ts";
import type { Agent } from "../resources/agent.ts";
import { keyOf } from "../resources/metadata.ts";
import { type Plan, planAgent, type Surroundings } from "./plan.ts";

/** The decisions on an Agent. */
export interface Judged {
  /** UID of the object that was judged. */
  readonly uid: string | undefined;
  readonly verdict: ObjectStatus;
  /** undefined if no version of it was ever valid. */
  readonly plan: Plan | undefined;
}

interface Entry extends Judged {
  /** Everything on which the plan depends: equal ones give equal plans. */
  readonly inputs: readonly unknown[];
}

export class Plans {
  #entries: ReadonlyMap<string, Entry> = new Map();

  /** @param key `<namespace>/<name>` */
  get(key: string): Judged | undefined {
    return this.#entries.get(key);
  }

  /**
   * Decides anew.
   * @param agents by `<namespace>/<name>`: the objects, and the verdicts on them
   * @returns the keys of the Agents for which something has changed
   */
  update(
    agents: ReadonlyMap<string, { readonly object: KubeObject; readonly verdict: ObjectStatus }>,
    compiled: Compiled,
    around: Surroundings,
  ): ReadonlySet<string> {
    const entries = new Map<string, Entry>();
    const changed = new Set<string>();
    for (const [key, { object, verdict }] of agents) {
      const agent = compiled.resources.agents.get(key);
      const { uid } = object.metadata;
      const inputs = [
        uid,
        ...ofVerdict(verdict),
        ...(agent === undefined ? [] : inputsOf(agent, compiled, around)),
      ];
      const before = this.#entries.get(key);
      if (before !== undefined && isSame(before.inputs, inputs)) {
        entries.set(key, before);
        continue;
      }
      const plan = agent === undefined ? undefined : planAgent(agent, verdict, compiled, around);
      entries.set(key, { uid, verdict, plan, inputs });
      changed.add(key);
    }
    this.#entries = entries;
    return changed;
  }
}

function ofVerdict({ ready, reason, message, observedGeneration }: ObjectStatus) {
  return [ready, reason, message, observedGeneration] as const;
}

/**
 * Resources are compared by identity: a source gives an unchanged one as the same value. What is
 * compiled of them follows from them.
 */
function inputsOf(
  agent: Agent,
  { resources }: Compiled,
  { uidOf, tokenOf, gateway, digestOf }: Surroundings,
): readonly unknown[] {
  const { namespace, name, spec } = agent;
  const inNamespace = (other: string): string => keyOf({ namespace, name: other });
  const providers = (spec.providers ?? []).flatMap((provider) => {
    const found = resources.providers.get(inNamespace(provider));
    if (found === undefined) return [found];
    const secretRef = found.spec.auth?.secretRef;
    if (secretRef === undefined) return [found];
    const secret = resources.secrets.get(inNamespace(secretRef));
    const digests = [...(secret?.values.keys() ?? [])].map((key) =>
      digestOf(namespace, { name: secretRef, key }),
    );
    return [found, secret, ...digests];
  });
  const guards = (spec.guards ?? []).map(({ binding }) =>
    resources.guardBindings.get(inNamespace(binding)),
  );
  const token = tokenOf(namespace, name);
  const hasGateway = gateway !== undefined;
  return [agent, uidOf(agent), token, hasGateway, gateway?.address, ...providers, null, ...guards];
}

function isSame(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.length === b.length && a.every((value, i) => value === b[i]);
}
