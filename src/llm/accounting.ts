/** Settles a call, exactly once: its usage, its cost, its budgets, its audit record, its line in the log, its metrics. */
import type { Logger } from "pino";
import type { Limits, Usage as CountedUsage } from "../limits/limits.ts";
import type { Clock } from "../platform/clock.ts";
import { costOf, formatUsd, toMicrodollars } from "../pricing/cost.ts";
import type { Cost, PriceBook } from "../pricing/price-book.ts";
import type { AuditTrail } from "./audit-trail.ts";
import { settleReservation } from "./budget.ts";
import type { Call, CallOutcome } from "./call.ts";
import type { Usage } from "./dialects/dialect.ts";
import { estimateTokens } from "./dialects/registry.ts";
import type { LlmMetrics } from "./metrics.ts";

export interface Settlement {
  readonly usage: Usage | undefined;
  /** `exact`: the provider said it. `estimated`: counted by us from what passed. */
  readonly usageKind: "exact" | "estimated" | "none";
  /** undefined where no price is known, or nothing was used. */
  readonly cost: Cost | undefined;
  /** The cost's total, in USD as a decimal. */
  readonly costUsd: string | undefined;
  readonly durationMs: number;
}

export interface AccountingOptions {
  readonly clock: Clock;
  readonly prices: () => PriceBook;
  readonly metrics: LlmMetrics;
  readonly limits: Limits;
  readonly audit: AuditTrail;
  readonly log: Logger;
}

export class Accounting {
  readonly #options: AccountingOptions;

  constructor(options: AccountingOptions) {
    this.#options = options;
  }

  /** What the call has used so far. Pure. */
  assess(call: Call): Settlement {
    const durationMs = Math.max(0, Math.round(this.#options.clock.monotonic() - call.startedAt));
    // Counting tokens costs nothing, however it ends.
    const free = call.route.operation === "count_tokens";
    const estimated = call.usage === undefined && call.answered && !free;
    const usage = call.usage ?? (estimated ? estimate(call) : undefined);
    if (usage === undefined)
      return { usage, usageKind: "none", cost: undefined, costUsd: undefined, durationMs };
    const price = this.#options.prices().priceOf(call.target.model);
    const cost = price === undefined ? undefined : costOf(price, usage);
    return {
      usage,
      usageKind: estimated ? "estimated" : "exact",
      cost,
      costUsd: cost === undefined ? undefined : formatUsd(cost.total),
      durationMs,
    };
  }

  /**
   * Call once, when the call is over.
   * @param done told when the audit record is on the disk, or cannot be kept: not before then may the answer's last
   * byte go out
   */
  settle(
    call: Call,
    outcome: CallOutcome,
    done: (settlement: Settlement, kept: boolean) => void,
  ): void {
    const settlement = this.assess(call);
    settleReservation(this.#options.limits, call, used(outcome, settlement));
    this.#options.metrics.settled(call, outcome, settlement);
    const { usage } = settlement;
    this.#options.log.info(
      {
        call: call.id,
        workload: call.permit.caller.workload,
        operation: call.route.operation,
        dialect: call.route.dialect,
        asked: call.permit.grant.ref,
        model: call.modelId,
        status: outcome.status,
        end: outcome.end,
        code: outcome.code,
        stream: call.stream,
        durationMs: settlement.durationMs,
        retries: call.retries,
        usage: settlement.usageKind,
        inputTokens: usage?.inputTokens,
        outputTokens: usage?.outputTokens,
        costUsd: settlement.costUsd,
        attempts: call.retries === 0 ? undefined : call.attempts,
      },
      "llm call",
    );
    this.#options.audit.called(call, outcome, settlement, (kept) => done(settlement, kept));
  }
}

/** What counts against budgets: what was used, and the request itself unless it came to nothing. */
function used(outcome: CallOutcome, { usage, cost }: Settlement): CountedUsage {
  if (usage === undefined)
    return {
      tokens: 0,
      microUsd: 0,
      requests: outcome.end === "completed" ? 1 : 0,
      unpriced: false,
    };
  return {
    tokens: usage.inputTokens + usage.outputTokens,
    microUsd: cost === undefined ? 0 : Number(toMicrodollars(cost.total)),
    requests: 1,
    unpriced: cost === undefined,
  };
}

/** For a broken stream: what the provider said of the input, else its size; the answer by the characters that passed. */
function estimate(call: Call): Usage {
  const said = call.partialUsage;
  const output = estimateTokens(call.outputCharacters);
  if (said !== undefined) return { ...said, outputTokens: Math.max(said.outputTokens, output) };
  return {
    inputTokens: estimateTokens(call.requestCharacters),
    cachedInputTokens: 0,
    cacheWrite5mTokens: 0,
    cacheWrite1hTokens: 0,
    outputTokens: output,
  };
}

type HeaderPair = readonly [name: string, value: string];

/** Known when an answer begins: on every LLM response, also a stream's. */
export function identityHeaders(call: Call): HeaderPair[] {
  const headers: HeaderPair[] = [
    ["x-svc-call-id", call.id],
    ["x-svc-model-id", call.modelId],
    ["x-svc-retries", String(call.retries)],
  ];
  if (call.fellBackFrom !== undefined) headers.push(["x-svc-fell-back-from", call.fellBackFrom]);
  return headers;
}

/** Known when an answer is over. */
export function totalsHeaders(settlement: Settlement): HeaderPair[] {
  const { usage, costUsd } = settlement;
  const headers: HeaderPair[] = [
    ["x-svc-input-tokens", String(usage?.inputTokens ?? 0)],
    ["x-svc-output-tokens", String(usage?.outputTokens ?? 0)],
    ["x-svc-duration-ms", String(settlement.durationMs)],
  ];
  if (usage !== undefined && usage.cachedInputTokens > 0) {
    headers.push(["x-svc-cached-input-tokens", String(usage.cachedInputTokens)]);
  }
  if (costUsd !== undefined) headers.push(["x-svc-cost-usd", costUsd]);
  return headers;
}
