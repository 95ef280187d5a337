/** The side of the chain's writer that those need who only record. */
import type { AppendOutcome, AuditEvent } from "./event.ts";

export interface AuditSink {
  append(event: AuditEvent, done?: (outcome: AppendOutcome) => void): void;
  readonly refusing: boolean;
}
