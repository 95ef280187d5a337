/** RequestContext is what the stages of one request have in common. */
import type { BytesInFlight } from "../../limits/bytes-in-flight.ts";
import type { FairShare } from "../../limits/fair-share.ts";
import type { Limits } from "../../limits/limits.ts";
import type { TimeSource } from "../../platform/clock.ts";
import type { PolicySnapshot } from "../../policy/snapshot.ts";
import type { PriceBook } from "../../pricing/price-book.ts";
import type { ExpectedDemand } from "../expected-demand.ts";

/** What the stages use of the process. */
export interface PipelineServices {
  readonly clock: TimeSource;
  readonly limits: Limits;
  readonly bytes: BytesInFlight;
  readonly share: FairShare;
  readonly expected: ExpectedDemand;
  readonly prices: () => PriceBook;
  /** While it returns true nothing new may begin: it could not be recorded. */
  readonly auditRefuses: () => boolean;
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

export interface RequestContext extends PipelineServices {
  /** Read once, at the request's start: a reload in the middle of a request changes nothing. */
  readonly snapshot: PolicySnapshot;
  readonly callId: string;
  /** Charges the work of this request, before and after, to the caller of this name. */
  readonly chargeTo: (name: string) => void;
  /** Milliseconds since the epoch: the day that the call counts into. */
  readonly admittedAt: number;
  /** Milliseconds, monotonic. */
  readonly startedAt: number;
}
