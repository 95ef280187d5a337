/** Prometheus metrics of the LLM gateway. */
import type { CallObserver, SettledCall } from "./settlement.ts";
import { Counter, Histogram, type Registry } from "prom-client";
import { LabelBound } from "../../platform/label-bound.ts";
import type { Cost } from "../../pricing/price-book.ts";
import type { Usage } from "../dialects/dialect.ts";
import { toUsdNumber } from "../../pricing/cost.ts";
import type { Call } from "../call.ts";
import type { AttemptTarget } from "../attempts/retry-plan.ts";

const SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];

/**
 * Maximum number of models of a provider with a label of their own, because callers may send any
 * name.
 */
const MODELS_PER_PROVIDER = 100;

export class LlmMetrics implements CallObserver {
  readonly #models = new LabelBound(MODELS_PER_PROVIDER);
  readonly #requests: Counter;
  readonly #tokens: Counter;
  readonly #cost: Counter;
  readonly #unpriced: Counter;
  readonly #duration: Histogram;
  readonly #firstToken: Histogram;
  readonly #retries: Counter;
  readonly #fallbacks: Counter;
  readonly #refused: Counter;

  constructor(registry: Registry) {
    const registers = [registry];
    const target = ["workload", "model", "provider"];
    this.#requests = new Counter({
      name: "svc_llm_requests_total",
      help: "LLM calls by outcome.",
      labelNames: [...target, "status", "end"],
      registers,
    });
    this.#tokens = new Counter({
      name: "svc_llm_tokens_total",
      help:
        "Tokens by kind (input, cached_input, output) and by source (exact: reported by the " +
        "provider; estimated).",
      labelNames: [...target, "kind", "source"],
      registers,
    });
    this.#cost = new Counter({
      name: "svc_cost_usd_total",
      help: "Cost in USD by kind (input, which includes cache writes; cached_input; output).",
      labelNames: ["workload", "model", "kind"],
      registers,
    });
    this.#unpriced = new Counter({
      name: "svc_llm_unpriced_total",
      help: "Calls whose model has no price: their cost is not counted.",
      labelNames: ["workload", "model"],
      registers,
    });
    this.#duration = new Histogram({
      name: "svc_llm_duration_seconds",
      help: "Time from a call's first byte to the last of its answer.",
      labelNames: target,
      buckets: SECONDS,
      registers,
    });
    this.#firstToken = new Histogram({
      name: "svc_llm_time_to_first_token_seconds",
      help: "Time from a streamed call's first byte to the first byte of its answer.",
      labelNames: target,
      buckets: SECONDS,
      registers,
    });
    this.#retries = new Counter({
      name: "svc_llm_retries_total",
      help: "Retries by the provider that failed.",
      labelNames: ["workload", "provider", "status"],
      registers,
    });
    this.#fallbacks = new Counter({
      name: "svc_llm_fallbacks_total",
      help: "Calls answered by a fallback.",
      labelNames: ["workload", "from", "to"],
      registers,
    });
    this.#refused = new Counter({
      name: "svc_llm_refused_total",
      help: "Requests refused before they reached a provider, by error code.",
      labelNames: ["code"],
      registers,
    });
  }

  refused(code: string): void {
    this.#refused.inc({ code });
  }

  settled({ call, outcome, settlement }: SettledCall): void {
    const workload = call.request.permit.caller.workload;
    const provider = call.target.provider.name;
    const model = this.#models.bound(provider, call.target.model);
    const target = { workload, model, provider };
    this.#requests.inc({ ...target, status: String(outcome.status), end: outcome.end });
    this.#duration.observe(target, settlement.durationMs / 1000);
    if (call.request.facts.stream && call.answer.firstByteAt !== undefined) {
      this.#firstToken.observe(target, (call.answer.firstByteAt - call.request.startedAt) / 1000);
    }
    if (call.retries > 0) this.#countRetries(call, workload);
    const { usage, usageKind, cost, lost } = settlement;
    for (const { attempt, usage: used, cost: costs } of lost) {
      this.#countUsage(workload, attempt.target, { usage: used, cost: costs, source: "estimated" });
    }
    if (usage !== undefined) {
      this.#countUsage(workload, call.target, { usage, cost, source: usageKind });
    }
  }

  #countUsage(
    workload: string,
    target: AttemptTarget,
    { usage, cost, source }: { usage: Usage; cost: Cost | undefined; source: string },
  ): void {
    const provider = target.provider.name;
    const model = this.#models.bound(provider, target.model);
    const tokens = (kind: string, count: number): void =>
      this.#tokens.inc({ workload, model, provider, kind, source }, count);
    tokens("input", usage.inputTokens);
    if (usage.cachedInputTokens > 0) tokens("cached_input", usage.cachedInputTokens);
    tokens("output", usage.outputTokens);
    if (cost === undefined) {
      this.#unpriced.inc({ workload, model });
      return;
    }
    this.#cost.inc({ workload, model, kind: "input" }, toUsdNumber(cost.input));
    if (usage.cachedInputTokens > 0) {
      this.#cost.inc({ workload, model, kind: "cached_input" }, toUsdNumber(cost.cachedInput));
    }
    this.#cost.inc({ workload, model, kind: "output" }, toUsdNumber(cost.output));
  }

  #countRetries(call: Call, workload: string): void {
    for (const attempt of call.attempts) {
      if (attempt.failure === undefined) continue;
      const status =
        attempt.failure.status === 0
          ? attempt.failure.flags || "none"
          : String(attempt.failure.status);
      this.#retries.inc({ workload, provider: attempt.target.provider.name, status });
    }
    const first = call.attempts[0];
    if (call.fellBackFrom === undefined || first === undefined) return;
    const from = this.#refOf(first.target);
    this.#fallbacks.inc({ workload, from, to: this.#refOf(call.target) });
  }

  #refOf({ provider: { name }, model }: AttemptTarget): string {
    return `${name}/${this.#models.bound(name, model)}`;
  }
}
