/** The side of the chain's writer that is for those who only record. */
import type { AppendOutcome, AuditEvent } from "./event.ts";

/**
 * Whether the chain takes records. `low`: space is short, and records that can be summarised are.
 * `full`: what is left is for calls under way. `failing`: it cannot be written.
 */
export type AuditState = "ok" | "low" | "full" | "failing";

export interface AuditSink {
  append(event: AuditEvent, done?: (outcome: AppendOutcome) => void): void;
  /** Whether new work must be refused. */
  readonly refusing: boolean;
  readonly state: AuditState;
}
