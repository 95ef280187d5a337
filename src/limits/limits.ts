/**
 * Limits on shared state: decided in the store that replicas share, or in memory if there is no
 * store or it is unavailable.
 */
import type { Limits } from "./contract.ts";
import { GatewayLimits, type GatewayLimitsOptions } from "./gateway-limits.ts";

type Defaulted = "leaseMs" | "admitTimeoutMs" | "random";
export type LimitsOptions = Omit<GatewayLimitsOptions, Defaulted> &
  Partial<Pick<GatewayLimitsOptions, Defaulted>>;

const LEASE_MS = 30_000;
const ADMIT_TIMEOUT_MS = 40;

export function createLimits(options: LimitsOptions): Limits {
  return new GatewayLimits({
    leaseMs: LEASE_MS,
    admitTimeoutMs: ADMIT_TIMEOUT_MS,
    random: Math.random,
    ...options,
  });
}
