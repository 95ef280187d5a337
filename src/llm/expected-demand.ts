/**
 * ExpectedDemand guesses what a request will ask the counters for before its body is there: agents
 * ask alike from one turn to the next. A guess that holds saves a question to the shared store.
 */
import type { Amounts } from "../limits/limits.ts";
import { countsCost, type LimitSubject } from "../limits/subject.ts";

interface Remembered {
  readonly bytes: number;
  readonly amounts: Amounts;
  readonly outputTokens: number;
}

/** Callers remembered; the one that asked longest ago is forgotten first. */
const MAX_CALLERS = 4_096;

/** A prompt may grow a little more than its bytes say; in percent. */
const MARGIN_PERCENT = 102;

export class ExpectedDemand {
  readonly #byCaller = new Map<string, Remembered>();

  /** @param bytes of the request's body */
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

  /** @param asked what the request really asked for */
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
