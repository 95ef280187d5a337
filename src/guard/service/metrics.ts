/** Metrics of the guard service; docs/metrics.md lists them. */
import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import type { Label } from "../protocol.ts";
import type { AdmissionQueue } from "./admission.ts";
import type { ClassifierReport } from "./classifier.ts";

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

export class GuardServiceMetrics implements ClassifierReport {
  readonly #requests: Counter;
  readonly #seconds: Histogram;
  readonly #labels: Counter;
  readonly #windows: Counter;
  readonly #batch: Histogram;

  constructor(registry: Registry, admission: AdmissionQueue) {
    const registers = [registry];
    this.#requests = new Counter({
      name: "svc_guard_service_requests_total",
      help: "Requests for a classification by HTTP status.",
      labelNames: ["status"],
      registers,
    });
    this.#seconds = new Histogram({
      name: "svc_guard_service_request_seconds",
      help: "Duration of answered classifications, with the time in the queue.",
      buckets: SECONDS,
      registers,
    });
    this.#labels = new Counter({
      name: "svc_guard_service_texts_total",
      help: "Classified texts by the label with the highest score.",
      labelNames: ["label"],
      registers,
    });
    this.#windows = new Counter({
      name: "svc_guard_service_windows_total",
      help: "Windows of texts that the model has classified.",
      registers,
    });
    this.#batch = new Histogram({
      name: "svc_guard_service_batch_windows",
      help: "Windows of one run of the model.",
      buckets: [1, 2, 4, 8, 16, 32],
      registers,
    });
    const gauges = [
      new Gauge({
        name: "svc_guard_service_active_requests",
        help: "Requests that are being classified.",
        registers,
        collect() {
          this.set(admission.active);
        },
      }),
      new Gauge({
        name: "svc_guard_service_queued_requests",
        help: "Requests that wait for their turn or for their body.",
        registers,
        collect() {
          this.set(admission.queued);
        },
      }),
    ];
    for (const gauge of gauges) gauge.set(0);
  }

  batch(windows: number): void {
    this.#windows.inc(windows);
    this.#batch.observe(windows);
  }

  classified(label: Label, ms: number): void {
    this.#labels.inc({ label });
    this.#seconds.observe(ms / 1000);
  }

  /** @param status 499 if the client disconnected before the answer */
  ended(status: number): void {
    this.#requests.inc({ status });
  }
}
