/** Prometheus metrics of the binding proxy. */
import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import { LabelBound } from "../platform/label-bound.ts";
import { actionsOf, type ServiceVerdict } from "./verdict.ts";

const DECISION_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5];
const CALL_SECONDS = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

/**
 * Maximum number of actions of a binding with a label of their own: some services have thousands.
 */
const ACTIONS_PER_BINDING = 200;

export class BindingMetrics {
  readonly #actions = new LabelBound(ACTIONS_PER_BINDING);
  readonly #decisions: Counter;
  readonly #latency: Histogram;
  readonly #calls: Histogram;
  readonly #malformed: Counter;
  readonly #broken: Counter;
  readonly #healthy: Gauge;
  readonly #waiting: Gauge;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#decisions = new Counter({
      name: "svc_binding_decisions_total",
      help:
        "Service calls by binding, action and decision (allowed, denied, audited: a " +
        "violation that was not blocked).",
      labelNames: ["binding", "action", "decision"],
      registers,
    });
    this.#latency = new Histogram({
      name: "svc_binding_decision_seconds",
      help: "Duration of a decision, with audit record and credential.",
      labelNames: ["binding", "action"],
      buckets: DECISION_SECONDS,
      registers,
    });
    this.#calls = new Histogram({
      name: "svc_binding_call_seconds",
      help: "Duration of forwarded service calls, to the end of their response.",
      labelNames: ["binding", "action", "status"],
      buckets: CALL_SECONDS,
      registers,
    });
    this.#malformed = new Counter({
      name: "svc_binding_malformed_total",
      help: "Ambiguous requests, and violations of HTTP, which were refused.",
      registers,
    });
    this.#broken = new Counter({
      name: "svc_binding_reload_errors_total",
      help: "Versions of the providers' file that were invalid.",
      registers,
    });
    this.#healthy = new Gauge({
      name: "svc_binding_reload_ok",
      help:
        "1 while the newest version of the providers' file is in force, 0 while an older one " +
        "is.",
      registers,
    });
    this.#healthy.set(1);
    this.#waiting = new Gauge({
      name: "svc_binding_changes_waiting",
      help: "Providers whose changes take effect when the sidecar restarts.",
      registers,
    });
  }

  decided(verdict: ServiceVerdict, milliseconds: number): void {
    const binding = verdict.binding?.name ?? "none";
    const passed = verdict.violations.length > 0 ? "audited" : "allowed";
    const decision = verdict.kind === "denied" ? "denied" : passed;
    const action = this.#actionOf(verdict);
    this.#decisions.inc({ binding, action, decision });
    this.#latency.observe({ binding, action }, milliseconds / 1000);
  }

  ended(verdict: ServiceVerdict, status: number, milliseconds: number): void {
    const action = this.#actionOf(verdict);
    this.#calls.observe(
      { binding: verdict.binding?.name ?? "none", action, status: String(status) },
      milliseconds / 1000,
    );
  }

  #actionOf(verdict: ServiceVerdict): string {
    const action = actionsOf(verdict)[0]?.action ?? "unknown";
    return this.#actions.bound(verdict.binding?.name ?? "none", action);
  }

  malformed(): void {
    this.#malformed.inc();
  }

  /** @param changes number of Providers */
  waiting(changes: number): void {
    this.#waiting.set(changes);
  }

  reloaded(ok: boolean): void {
    this.#healthy.set(ok ? 1 : 0);
    if (!ok) this.#broken.inc();
  }
}
