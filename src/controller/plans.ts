/** The verdicts and plans of all Agents, by the newest load of resources. */
import { createHash } from "node:crypto";
import type { Compiled } from "../compile/compile.ts";
import type { KubeObject } from "../kubernetes/objects.ts";
import type { ObjectStatus } from "../policy/status.ts";
import { type Plan, planAgent, type Surroundings } from "./plan.ts";

/** What is decided of an Agent. */
export interface Judged {
  /** UID of the object that was judged. */
  readonly uid: string | undefined;
  readonly verdict: ObjectStatus;
  /** undefined if no version of it was ever valid. */
  readonly plan: Plan | undefined;
  /** Equal ones need no work. */
  readonly hash: string;
}

export class Plans {
  #judged: ReadonlyMap<string, Judged> = new Map();

  /** @param key `<namespace>/<name>` */
  get(key: string): Judged | undefined {
    return this.#judged.get(key);
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
    const judged = new Map<string, Judged>();
    const changed = new Set<string>();
    for (const [key, { object, verdict }] of agents) {
      const agent = compiled.resources.agents.get(key);
      const plan = agent === undefined ? undefined : planAgent(agent, verdict, compiled, around);
      const { uid } = object.metadata;
      const hash = createHash("sha256")
        .update(JSON.stringify([uid, verdict, plan]))
        .digest("base64");
      const before = this.#judged.get(key);
      if (before?.hash !== hash) changed.add(key);
      judged.set(key, before?.hash === hash ? before : { uid, verdict, plan, hash });
    }
    this.#judged = judged;
    return changed;
  }
}
