/**
 * ExpectedDemand predicts the counters' demand of a request before its body arrives, because an
 * agent's requests are similar from turn to turn. A correct prediction saves a call to the shared
 * store.
 */
import type { Amounts } from "../../limits/contract.ts";
import { countsCost, type LimitSubject } from "../../limits/subject.ts";

interface Remembered {
  readonly bytes: number;
  readonly amounts: Amounts;
  readonly outputTokens: number;
}

/** Maximum number of callers; the least recently active one is removed first. */
const MAX_CALLERS = 4_096;

/** Allowance in percent for prompts with more tokens than their bytes suggest. */
const MARGIN_PERCENT = 102;

export class ExpectedDemand {
  readonly #byCaller = new Map<string, Remembered>();

  /** @param bytes size of the request's body */
  of(subject: LimitSubject, bytes: number): Amounts | undefined {
    if (!countsCost(subject)) return undefined;
    const last = this.#byCaller.get(keyOf(subject));
    if (last === undefined) return undefined;
    const promptTokens = last.amounts.tokens - last.outputTokens;
    const growth = Math.max(1, bytes / Math.max(1, last.bytes));
    const tokens = Math.ceil((promptTokens * growth * MARGIN_PERCENT) / 100) + last.outputTokens;
    const microUsd = Math.ceil((last.amounts.microUsd * tokens) / Math.max(1, last.amounts.tokens));
    return { tokens, microUsd, requests: 1 };
  }

  /** @param asked the actual demand of the request */
  remember(
    subject: LimitSubject,
    bytes: number,
    asked: { readonly amounts: Amounts; readonly outputTokens: number },
  ): void {
    const key = keyOf(subject);
    this.#byCaller.delete(key);
    this.#byCaller.set(key, { bytes, ...asked });
    if (this.#byCaller.size > MAX_CALLERS) {
      this.#byCaller.delete(this.#byCaller.keys().next().value as string);
    }
  }
}

function keyOf({ scope, accounts }: LimitSubject): string {
  return `${scope} ${accounts.at(-1) ?? ""}`;
}
