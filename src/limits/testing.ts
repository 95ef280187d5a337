/**
 * Helpers for the tests of limits: a clock that tests advance, and processes that share a store.
 */
import { Registry } from "prom-client";
import { pino } from "pino";
import type { FakeClock } from "../platform/testing.ts";
import type { Check, CountedUsage, Limits } from "./contract.ts";
import { createLimits, type LimitsOptions } from "./limits.ts";

/** Noon, UTC. */
export const NOON = Date.UTC(2026, 10, 21, 12);

/** Runs more rounds of the event loop than a deadline waits for. */
export async function rounds(): Promise<void> {
  for (let round = 0; round < 4; round++) await new Promise((resolve) => setImmediate(resolve));
}

/** Advances time in steps; a single step would look like a process that was held up. */
export async function pass(clock: FakeClock, ms: number, stepMs = 10): Promise<void> {
  for (let passed = 0; passed < ms; passed += stepMs) {
    clock.advance(Math.min(stepMs, ms - passed));
    await rounds();
  }
}

/** One process: its limits, its log, its metrics. */
export class LimitingProcess {
  readonly clock: FakeClock;
  readonly limits: Limits;
  readonly lines: Record<string, unknown>[] = [];
  readonly #registry = new Registry();

  constructor(clock: FakeClock, options: Omit<LimitsOptions, "clock" | "log" | "registry">) {
    this.clock = clock;
    const log = pino(
      { level: "info" },
      { write: (line: string) => this.lines.push(JSON.parse(line) as Record<string, unknown>) },
    );
    this.limits = createLimits({ ...options, clock, log, registry: this.#registry });
  }

  get warnings(): readonly Record<string, unknown>[] {
    return this.lines.filter((line) => line["level"] === 40);
  }

  async metric(name: string): Promise<number> {
    const metric = await this.#registry.getSingleMetric(name)?.get();
    return metric?.values[0]?.value ?? Number.NaN;
  }

  /** Number of probes that the store has answered. */
  async probes(): Promise<number> {
    const metric = await this.#registry.getSingleMetric("svc_store_seconds")?.get();
    const count = metric?.values.find(
      (value) =>
        "metricName" in value &&
        value.metricName === "svc_store_seconds_count" &&
        value.labels["op"] === "probe",
    );
    return count?.value ?? 0;
  }

  async up(): Promise<boolean> {
    return (await this.metric("svc_store_up")) === 1;
  }
}

export const SCOPE = "agent/default/researcher";

export const daily = (
  limit: number,
  unit: "tokens" | "requests" | "microUsd" = "tokens",
  account = "agent",
): Check => ({
  kind: "daily",
  account,
  unit,
  limit,
});
export const rate = (limit: number, windowMs = 60_000): Check => ({
  kind: "rate",
  account: "agent",
  limit,
  windowMs,
});
export const concurrency = (limit: number): Check => ({
  kind: "concurrency",
  account: "agent",
  limit,
});

export const NOTHING: CountedUsage = { tokens: 0, microUsd: 0, requests: 0, unpriced: false };
export const used = (tokens: number, microUsd = 0, requests = 1): CountedUsage => ({
  tokens,
  microUsd,
  requests,
  unpriced: false,
});
