import type { Clock } from "../../platform/clock.ts";
import type { Logger } from "../../platform/log.ts";
import type { SessionBus } from "./bus.ts";
import type { BridgeLimits, BridgeTimes } from "./limits.ts";
import type { BridgeMetrics } from "./metrics.ts";

/** What every part of the bridge needs. */
export interface BridgeContext {
  readonly clock: Clock;
  readonly log: Logger;
  readonly bus: SessionBus;
  readonly metrics: BridgeMetrics;
  readonly limits: BridgeLimits;
  readonly times: BridgeTimes;
  readonly random: () => number;
  readonly onDefect: (error: unknown) => void;
}
