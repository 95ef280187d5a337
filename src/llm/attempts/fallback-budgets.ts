/**
 * FallbackBudgets counts what the fallbacks of one external call serve. A ModelProvider's
 * `externalAccess.maxTokensPerDay` covers everything that it serves to access keys, also as a
 * fallback of the ModelProvider that the key names.
 */
import {
  type Amounts,
  type CountedUsage,
  type Lease,
  type Limits,
  NOTHING_USED,
} from "../../limits/contract.ts";
import { externalScope, PROVIDER_ACCOUNT } from "../../limits/subject.ts";
import type { AttemptTarget } from "./retry-plan.ts";

export interface FallbackBudgetsOptions {
  readonly limits: Limits;
  /** Id of the call. */
  readonly id: string;
  /** Key of the requested ModelProvider, which the call's own limits count. */
  readonly requested: string;
  /** The largest use that the call may make of a fallback. */
  readonly demand: () => Amounts;
  /** Milliseconds since the epoch: determines the day to which the call belongs. */
  readonly admittedAt: number;
}

export class FallbackBudgets {
  readonly #options: FallbackBudgetsOptions;
  /** By key of the ModelProvider. */
  readonly #leases = new Map<string, Lease>();
  #settled = false;

  constructor(options: FallbackBudgetsOptions) {
    this.#options = options;
  }

  /**
   * Reserves the call's demand in the budget of a target. Returns whether there is room; always
   * true if the target has no budget, or is the requested ModelProvider.
   */
  enter({ provider }: AttemptTarget): boolean | Promise<boolean> {
    const { limits, id, requested, demand } = this.#options;
    const limit = provider.external?.maxTokensPerDay;
    if (limit === undefined || provider.key === requested || this.#leases.has(provider.key)) {
      return true;
    }
    const admission = limits.admit({
      id: `${id}/${provider.name}`,
      scope: externalScope(provider.key),
      accounts: [PROVIDER_ACCOUNT],
      checks: [{ kind: "daily", account: PROVIDER_ACCOUNT, unit: "tokens", limit }],
      reserve: demand(),
    });
    const answer = (known: Awaited<typeof admission>): boolean => {
      if (known.kind === "refused") return false;
      // The client disconnected while the counters were asked.
      if (this.#settled) limits.settle(known.lease, NOTHING_USED);
      else this.#leases.set(provider.key, known.lease);
      return true;
    };
    return admission instanceof Promise ? admission.then(answer) : answer(admission);
  }

  /**
   * Counts what each fallback was used for, and returns the unused reservations. Called once.
   *
   * @param used by key of the ModelProvider
   */
  settle(used: ReadonlyMap<string, CountedUsage>): void {
    const { limits, requested, admittedAt } = this.#options;
    this.#settled = true;
    for (const [key, lease] of this.#leases) limits.settle(lease, used.get(key) ?? NOTHING_USED);
    for (const [key, usage] of used) {
      if (key === requested || this.#leases.has(key)) continue;
      limits.record(externalScope(key), [PROVIDER_ACCOUNT], usage, admittedAt);
    }
  }
}
