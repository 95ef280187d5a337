/** The settlement of a call: its usage, its cost and its duration. */
import type { Cost } from "../pricing/price-book.ts";
import type { Attempt } from "./call.ts";
import type { Usage } from "./dialects/dialect.ts";

export interface Settlement {
  /** Usage of the attempt that answered, or was abandoned. */
  readonly usage: Usage | undefined;
  /** `exact`: reported by the provider. `estimated`: an upper bound, see `estimate.ts`. */
  readonly usageKind: "exact" | "estimated" | "none";
  /** undefined if no price is known, or nothing was used. */
  readonly cost: Cost | undefined;
  /** The cost's total, in USD as a decimal. */
  readonly costUsd: string | undefined;
  readonly durationMs: number;
  /** Failed attempts that may nevertheless have a cost. */
  readonly lost: readonly LostAttempt[];
}

export interface LostAttempt {
  readonly attempt: Attempt;
  readonly usage: Usage;
  /** undefined if no price is known. */
  readonly cost: Cost | undefined;
}
