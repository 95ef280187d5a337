/**
 * The settlement of a call: its outcome, usage, cost and duration, and who is told of it. Another
 * consumer of settled calls, such as a tracer, is one more {@link CallObserver}.
 */
import type { Cost } from "../../pricing/price-book.ts";
import type { Attempt, Call } from "../call.ts";
import type { Usage } from "../dialects/dialect.ts";

/** Outcome of a call. */
export interface CallOutcome {
  readonly status: number;
  /**
   * `completed` whole, `failed` with an error to the client, `cut` in the middle, `disconnected` by
   * the client.
   */
  readonly end: "completed" | "failed" | "cut" | "disconnected";
  readonly code: string | undefined;
}

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

export interface SettledCall {
  readonly call: Call;
  readonly outcome: CallOutcome;
  readonly settlement: Settlement;
}

/** Observer of settled calls. Each call is observed once. */
export interface CallObserver {
  settled(settled: SettledCall): void;
}

/**
 * Called when the outcome of the record is known; false if it could not be written but must be
 * (`--audit-on-failure refuse`).
 */
export type Recorded = (kept: boolean) => void;

/** Keeps a record of each settled call. The last byte of an answer waits for its record. */
export interface CallRecorder {
  record(settled: SettledCall, recorded: Recorded): void;
}
