/** How busy the event loop is. */
import { performance } from "node:perf_hooks";

/**
 * Returns a function that reports the utilization of this process's event loop since it was last
 * called: 0 where it only waited, 1 where it never did.
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
