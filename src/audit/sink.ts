/** The interface of the chain's writer for components that only record. */
import type { AppendOutcome, AuditEvent } from "./event.ts";

/**
 * Whether the chain accepts records. `low`: space is short, and records that can be summarised are
 * summarised. `full`: the remaining space is for calls under way. `failing`: it cannot be written.
 */
export type AuditState = "ok" | "low" | "full" | "failing";

export interface AuditSink {
  append(event: AuditEvent, done?: (outcome: AppendOutcome) => void): void;
  /** Whether new work must be refused. */
  readonly refusing: boolean;
  readonly state: AuditState;
}
