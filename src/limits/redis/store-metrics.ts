/** Metrics of the store of limits. */
import { Counter, Gauge, Histogram, type Registry } from "prom-client";

export type StoreOp = "admit" | "sync" | "probe";

const SECONDS = [0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 1, 10];

export class StoreMetrics {
  readonly #up: Gauge;
  readonly #failOpen: Counter;
  readonly #seconds: Histogram;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#up = new Gauge({
      name: "svc_store_up",
      help:
        "1 while the store of limits is used, 0 while it is unavailable and limits are " +
        "checked in memory. 1 without Redis.",
      registers,
    });
    this.#failOpen = new Counter({
      name: "svc_store_fail_open_total",
      help: "Requests whose limits were checked in this process's memory because Redis was away.",
      registers,
    });
    this.#seconds = new Histogram({
      name: "svc_store_seconds",
      help: "Response time of Redis by operation (admit, sync, probe), without failures.",
      labelNames: ["op"],
      buckets: SECONDS,
      registers,
    });
  }

  up(up: boolean): void {
    this.#up.set(up ? 1 : 0);
  }

  failedOpen(): void {
    this.#failOpen.inc();
  }

  answered(op: StoreOp, ms: number): void {
    this.#seconds.observe({ op }, ms / 1000);
  }
}
