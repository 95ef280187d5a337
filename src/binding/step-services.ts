import type { RefusalLog } from "../audit/refusals/refusals.ts";
import type { AuditSink } from "../audit/sink.ts";
import type { Clock } from "../platform/clock.ts";
import type { Logger } from "../platform/log.ts";

/** StepServices is what the steps of the pipeline use of the process. */
export interface StepServices {
  readonly clock: Clock;
  readonly log: Logger;
  /** undefined if nothing is recorded. */
  readonly audit: AuditSink | undefined;
  /** Limits records and log lines of denied requests. */
  readonly refusals: RefusalLog;
  /** Returns `address:port` of a host, from DNS servers only; undefined if it has none. */
  readonly resolve: (host: string) => Promise<string | undefined>;
}
