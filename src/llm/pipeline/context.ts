/** RequestContext is the data shared by the stages of one request. */
import type { Guards } from "../../guard/guards.ts";
import type { Limits } from "../../limits/contract.ts";
import type { BytesInFlight } from "../../limits/load/bytes-in-flight.ts";
import type { FairShare } from "../../limits/load/fair-share.ts";
import type { TimeSource } from "../../platform/clock.ts";
import type { PolicySnapshot } from "../../policy/snapshot.ts";
import type { PriceBook } from "../../pricing/price-book.ts";
import type { ExpectedDemand } from "../request/expected-demand.ts";

/** Dependencies of the stages. */
export interface PipelineServices {
  readonly clock: TimeSource;
  readonly limits: Limits;
  readonly bytes: BytesInFlight;
  readonly share: FairShare;
  readonly expected: ExpectedDemand;
  readonly prices: () => PriceBook;
  readonly guards: Pick<Guards, "scan">;
  /** While it returns true, no new calls may begin, because they could not be recorded. */
  readonly auditRefuses: () => boolean;
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

export interface RequestContext extends PipelineServices {
  /** Read once, at the request's start: a reload does not affect running requests. */
  readonly snapshot: PolicySnapshot;
  readonly callId: string;
  /** Charges the work of this request, past and future, to the named caller. */
  readonly chargeTo: (name: string) => void;
  /** Milliseconds since the epoch: determines the day to which the call belongs. */
  readonly admittedAt: number;
  /** Milliseconds, monotonic. */
  readonly startedAt: number;
}
