/** Budgets of a call: what it may cost, and its settlement. */
import type { Lease, Limits, CountedUsage } from "../../limits/contract.ts";
import { costOf, toMicrodollars } from "../../pricing/cost.ts";
import type { PriceBook } from "../../pricing/price-book.ts";
import type { CallRequest } from "../call.ts";

/**
 * Returns the cost of the given tokens, rounded up to micro-dollars; undefined if the model has no
 * price.
 */
export function microUsdOf(
  prices: PriceBook,
  model: string,
  promptTokens: number,
  outputTokens: number,
): number | undefined {
  const price = prices.priceOf(model);
  if (price === undefined) return undefined;
  const counts = {
    inputTokens: promptTokens,
    cachedInputTokens: 0,
    cacheWrite5mTokens: 0,
    cacheWrite1hTokens: 0,
    outputTokens,
  };
  return Number(toMicrodollars(costOf(price, counts).total));
}

/**
 * Counts the usage of a call, and returns the unused part of its reservation.
 *
 * @param lease of the reservation; undefined if none was needed
 */
export function settleReservation(
  limits: Limits,
  { subject, admittedAt }: CallRequest,
  lease: Lease | undefined,
  used: CountedUsage,
): void {
  if (lease !== undefined) limits.settle(lease, used);
  else if (used.requests > 0 || used.tokens > 0)
    limits.record(subject.scope, subject.accounts, used, admittedAt);
}
