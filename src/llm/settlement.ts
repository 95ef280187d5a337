/** Settlement is what became of a call: what it used, what that cost, and how long it took. */
import type { Cost } from "../pricing/price-book.ts";
import type { Attempt } from "./call.ts";
import type { Usage } from "./dialects/dialect.ts";

export interface Settlement {
  /** Of the attempt that answered, or was left. */
  readonly usage: Usage | undefined;
  /** `exact`: the provider said it. `estimated`: bounded by us, see `estimate.ts`. */
  readonly usageKind: "exact" | "estimated" | "none";
  /** undefined where no price is known, or nothing was used. */
  readonly cost: Cost | undefined;
  /** The cost's total, in USD as a decimal. */
  readonly costUsd: string | undefined;
  readonly durationMs: number;
  /** Attempts that failed and may have cost something all the same. */
  readonly lost: readonly LostAttempt[];
}

export interface LostAttempt {
  readonly attempt: Attempt;
  readonly usage: Usage;
  /** undefined where no price is known. */
  readonly cost: Cost | undefined;
}
