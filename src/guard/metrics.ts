/** Prometheus metrics of the guard. `scanner` is the type of the classifier. */
import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import type { ClassifierType } from "../policy/snapshot.ts";
import type { ClassifierFailure } from "./classifier-client.ts";
import type { Label } from "./protocol.ts";

/** Result of a check: `unavailable` if a text was not judged and none of the others is flagged. */
export type CheckLabel = Label | "unavailable";

/** Effect of a check on its call. */
export type CheckAction = "allow" | "audit" | "block";

export interface GuardCheck {
  readonly workload: string;
  readonly scanner: ClassifierType;
  readonly label: CheckLabel;
  readonly action: CheckAction;
  /** Time that the check took, in milliseconds. */
  readonly durationMs: number;
}

const SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10];

export class GuardMetrics {
  readonly #checks: Counter;
  readonly #latency: Histogram;
  readonly #verdicts: Counter;
  readonly #characters: Counter;
  readonly #failures: Counter;
  #states: () => readonly { readonly scanner: string; readonly open: boolean }[] = () => [];

  constructor(registry: Registry) {
    const registers = [registry];
    this.#checks = new Counter({
      name: "svc_guard_checks_total",
      help:
        "Checks of requests and answers, one for each guard, by label (benign, injection, " +
        "jailbreak, unavailable: not all of it could be judged) and action (allow, audit, block).",
      labelNames: ["workload", "scanner", "label", "action"],
      registers,
    });
    this.#latency = new Histogram({
      name: "svc_guard_latency_seconds",
      help: "Time of a check, with remembered verdicts and with requests to the classifier.",
      labelNames: ["scanner"],
      buckets: SECONDS,
      registers,
    });
    this.#verdicts = new Counter({
      name: "svc_guard_verdicts_total",
      help: "Verdicts about pieces of text by source (classifier, or cache: remembered).",
      labelNames: ["scanner", "source"],
      registers,
    });
    this.#characters = new Counter({
      name: "svc_guard_classified_characters_total",
      help: "Characters that were sent to classifiers.",
      labelNames: ["scanner"],
      registers,
    });
    this.#failures = new Counter({
      name: "svc_guard_classifier_failures_total",
      help: "Requests to classifiers without a verdict, by reason.",
      labelNames: ["scanner", "reason"],
      registers,
    });
    const open: Gauge = new Gauge({
      name: "svc_guard_breakers_open",
      help: "Classifiers that are not waited for at present, because they failed.",
      labelNames: ["scanner"],
      registers,
      collect: () => {
        open.reset();
        for (const state of this.#states())
          open.inc({ scanner: state.scanner }, state.open ? 1 : 0);
      },
    });
  }

  /** @param states returns the state of every classifier in use */
  watch(states: () => readonly { readonly scanner: string; readonly open: boolean }[]): void {
    this.#states = states;
  }

  checked({ workload, scanner, label, action, durationMs }: GuardCheck): void {
    this.#checks.inc({ workload, scanner, label, action });
    this.#latency.observe({ scanner }, durationMs / 1_000);
  }

  asked(scanner: ClassifierType, characters: number): void {
    this.#verdicts.inc({ scanner, source: "classifier" });
    this.#characters.inc({ scanner }, characters);
  }

  remembered(scanner: ClassifierType): void {
    this.#verdicts.inc({ scanner, source: "cache" });
  }

  failed(scanner: ClassifierType, reason: ClassifierFailure): void {
    this.#failures.inc({ scanner, reason });
  }
}
