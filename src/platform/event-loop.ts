/** Utilization of the event loop. */
import { performance } from "node:perf_hooks";

/**
 * Returns a function that reports the utilization of this process's event loop since its last call:
 * 0 if the loop only waited, 1 if it never waited.
 */
export function eventLoopUtilization(): () => number {
  let last = performance.eventLoopUtilization();
  return () => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, last);
    last = now;
    return utilization;
  };
}
