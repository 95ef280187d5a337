/**
 * Settles a call, exactly once: its usage, cost and budgets. Tells the observers, and then the
 * recorder.
 */
import type { Limits, CountedUsage } from "../../limits/contract.ts";
import type {
  CallObserver,
  CallOutcome,
  CallRecorder,
  LostAttempt,
  SettledCall,
  Settlement,
} from "./settlement.ts";
import type { TimeSource } from "../../platform/clock.ts";
import { costOf, formatUsd, toMicrodollars } from "../../pricing/cost.ts";
import type { Cost, PriceBook } from "../../pricing/price-book.ts";
import { settleReservation } from "./budget.ts";
import type { Call } from "../call.ts";
import type { Usage } from "../dialects/dialect.ts";
import { estimateLostAttempt, estimateUsage } from "./estimate.ts";

export interface AccountingOptions {
  readonly clock: TimeSource;
  readonly prices: () => PriceBook;
  readonly limits: Limits;
  readonly observers: readonly CallObserver[];
  readonly recorder: CallRecorder;
}

export class Accounting {
  readonly #options: AccountingOptions;

  constructor(options: AccountingOptions) {
    this.#options = options;
  }

  /** Returns what the call has used so far. Pure. */
  assess(call: Call): Settlement {
    const now = this.#options.clock.monotonic();
    const durationMs = Math.max(0, Math.round(now - call.request.startedAt));
    // Counting tokens costs nothing, with any outcome.
    const free = call.request.route.operation === "count_tokens";
    const lost = free ? [] : this.#lostAttempts(call);
    const estimated = call.answer.usage === undefined && call.answer.begun && !free;
    const usage = call.answer.usage ?? (estimated ? estimateUsage(call, now) : undefined);
    if (usage === undefined) {
      return { usage, usageKind: "none", cost: undefined, costUsd: undefined, durationMs, lost };
    }
    const cost = this.#costOf(call.target.model, usage);
    return {
      usage,
      usageKind: estimated ? "estimated" : "exact",
      cost,
      costUsd: cost === undefined ? undefined : formatUsd(cost.total),
      durationMs,
      lost,
    };
  }

  #lostAttempts(call: Call): LostAttempt[] {
    if (call.attempts[0]?.failure === undefined) return [];
    return call.attempts.flatMap((attempt) => {
      const usage = estimateLostAttempt(call, attempt);
      if (usage === undefined) return [];
      return [{ attempt, usage, cost: this.#costOf(attempt.target.model, usage) }];
    });
  }

  #costOf(model: string, usage: Usage): Cost | undefined {
    const price = this.#options.prices().priceOf(model);
    return price === undefined ? undefined : costOf(price, usage);
  }

  /**
   * Called once, when the call has ended.
   * @param done called when the audit record is on the disk, or cannot be written: the answer's
   * last byte must not be sent before
   */
  settle(
    call: Call,
    outcome: CallOutcome,
    done: (settlement: Settlement, kept: boolean) => void,
  ): void {
    const settlement = this.assess(call);
    settleReservation(this.#options.limits, call.request, call.lease, used(outcome, settlement));
    call.fallbackBudgets?.settle(usedByProvider(call, outcome, settlement));
    const settled: SettledCall = { call, outcome, settlement };
    for (const observer of this.#options.observers) observer.settled(settled);
    this.#options.recorder.record(settled, (kept) => done(settlement, kept));
  }
}

/**
 * Returns the usage that counts against budgets: the used amounts, and the request itself unless it
 * failed.
 */
function used(outcome: CallOutcome, { usage, cost, lost }: Settlement): CountedUsage {
  return sum(outcome, usage === undefined ? lost : [...lost, { usage, cost }]);
}

/** Like {@link used}, by the key of the ModelProvider that was used. */
function usedByProvider(
  call: Call,
  outcome: CallOutcome,
  { usage, cost, lost }: Settlement,
): ReadonlyMap<string, CountedUsage> {
  const own = usage === undefined ? [] : [{ target: call.target, usage, cost }];
  const parts = [...lost.map((part) => ({ ...part, target: part.attempt.target })), ...own];
  const byProvider = Map.groupBy(parts, ({ target }) => target.provider.key);
  return new Map([...byProvider].map(([key, its]) => [key, sum(outcome, its)]));
}

function sum(outcome: CallOutcome, parts: readonly UsedPart[]): CountedUsage {
  const total = { tokens: 0, microUsd: 0, unpriced: false };
  for (const part of parts) {
    total.tokens += part.usage.inputTokens + part.usage.outputTokens;
    if (part.cost === undefined) total.unpriced = true;
    else total.microUsd += Number(toMicrodollars(part.cost.total));
  }
  const requests = parts.length > 0 || outcome.end === "completed" ? 1 : 0;
  return { ...total, requests };
}

type UsedPart = Pick<LostAttempt, "usage" | "cost">;

type HeaderPair = readonly [name: string, value: string];

/** Headers known when an answer begins: on every LLM response, also that of a stream. */
export function identityHeaders(call: Call): HeaderPair[] {
  const headers: HeaderPair[] = [
    ["x-svc-call-id", call.request.id],
    ["x-svc-model-id", call.modelId],
    ["x-svc-retries", String(call.retries)],
  ];
  if (call.fellBackFrom !== undefined) headers.push(["x-svc-fell-back-from", call.fellBackFrom]);
  const dropped = call.attempts.at(-1)?.changes.dropped ?? [];
  if (dropped.length > 0) headers.push(["x-svc-dropped", listValue(dropped)]);
  return headers;
}

/** Maximum length of a header's value that contains names of the client's fields. */
const MAX_LIST_LENGTH = 1_024;

/** Returns the client's names as a header value: visible ASCII, separated by commas. */
function listValue(names: readonly string[]): string {
  const list = names.map((name) => name.replaceAll(/[^\w.[\]-]/g, "?")).join(", ");
  return list.length <= MAX_LIST_LENGTH ? list : `${list.slice(0, MAX_LIST_LENGTH - 3)}...`;
}

/** Headers known when an answer has ended. */
export function totalsHeaders({
  usage,
  costUsd,
  durationMs,
}: Pick<Settlement, "usage" | "costUsd" | "durationMs">): HeaderPair[] {
  const headers: HeaderPair[] = [
    ["x-svc-input-tokens", String(usage?.inputTokens ?? 0)],
    ["x-svc-output-tokens", String(usage?.outputTokens ?? 0)],
    ["x-svc-duration-ms", String(durationMs)],
  ];
  if (usage !== undefined && usage.cachedInputTokens > 0) {
    headers.push(["x-svc-cached-input-tokens", String(usage.cachedInputTokens)]);
  }
  if (costUsd !== undefined) headers.push(["x-svc-cost-usd", costUsd]);
  return headers;
}
