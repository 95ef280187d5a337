/**
 * Writes refusals to the audit chain. A refused request costs its sender almost nothing, so its
 * record must not cost much either: no request waits for it, and only a limited number per second
 * get a record of their own, for each caller and in total. The others are counted, and a periodic
 * record states their number, callers and reasons. Completed calls are not handled here.
 */
import { Counter, type Registry } from "prom-client";
import type { Clock } from "../../platform/clock.ts";
import type { Logger } from "../../platform/log.ts";
import { Budget, CallerBudgets, type Rate } from "./refusal-budgets.ts";
import type { AuditEvent } from "../event.ts";
import { type LeftOut, type LeftOutReason, Omissions } from "./omissions.ts";
import type { AuditSink } from "../sink.ts";

/** Type of the records that summarise omitted refusals. */
export const REFUSALS_LEFT_OUT = "REFUSALS_LEFT_OUT";

export interface RefusalLimits {
  /** Rate for the records of one caller. */
  readonly caller: Rate;
  /** Rate for the records of all callers together. */
  readonly total: Rate;
  /** Maximum number of callers with a budget of their own at a time; further ones share one. */
  readonly callers: number;
  /** Maximum time between an omitted refusal and the record that reports it. */
  readonly summaryMs: number;
}

/**
 * Records of refusals have at most some 1.5 KB each: 130 MB a day for one caller, 1.3 GB for all.
 * The bursts are for people who test by hand, and for clients that start with a wrong setting.
 */
export const REFUSAL_LIMITS: RefusalLimits = {
  caller: { perSecond: 1, burst: 60 },
  total: { perSecond: 10, burst: 300 },
  callers: 1_000,
  summaryMs: 60_000,
};

export interface RefusalLogOptions {
  /** undefined if nothing is recorded (`--no-audit`): omissions are then logged. */
  readonly sink: AuditSink | undefined;
  /** Type of the records of single refusals, e.g. `LLM_REFUSED`. */
  readonly of: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly registry: Registry;
  readonly limits?: Partial<RefusalLimits>;
}

export interface RefusalEntry {
  /**
   * The refused caller: one of our names, never a client's text. Unknown callers share one name.
   */
  readonly caller: string;
  readonly code: string;
  /** Creates the refusal's own record, if it gets one. */
  readonly event: () => AuditEvent;
}

export class RefusalLog {
  readonly #options: RefusalLogOptions;
  readonly #summaryMs: number;
  readonly #callers: CallerBudgets;
  readonly #total: Budget;
  readonly #counter: Counter;
  readonly #counts: Record<LeftOutReason, number> = { rate: 0, space: 0, failure: 0 };
  #omitted = new Omissions();
  #cancel: (() => void) | undefined;
  /** The summary record that is being written. */
  #telling: Promise<void> | undefined;
  #closed = false;

  constructor(options: RefusalLogOptions) {
    const limits = { ...REFUSAL_LIMITS, ...options.limits };
    this.#options = options;
    this.#summaryMs = limits.summaryMs;
    this.#callers = new CallerBudgets(limits.caller, limits.callers);
    this.#total = new Budget(limits.total);
    this.#counter = new Counter({
      name: "svc_audit_refusals_left_out_total",
      help:
        "Refusals without an audit record of their own, by reason (rate, space: the volume " +
        "is low, failure: the chain cannot be written).",
      labelNames: ["reason"],
      registers: [options.registry],
    });
    for (const reason of Object.keys(this.#counts)) this.#counter.inc({ reason }, 0);
  }

  /** Number of omitted refusals since the start, by reason. */
  get leftOut(): Readonly<Record<LeftOutReason, number>> {
    return { ...this.#counts };
  }

  /** @returns whether the refusal got a record of its own */
  record({ caller, code, event }: RefusalEntry): boolean {
    const reason = this.#reasonToLeaveOut(caller);
    if (reason === undefined) {
      this.#options.sink?.append(event());
      return true;
    }
    this.#counts[reason] += 1;
    this.#counter.inc({ reason });
    this.#omitted.add({ caller, code, reason, time: this.#options.clock.now() });
    this.#arm();
    return false;
  }

  /**
   * Records the omitted refusals that are not reported yet. Call it after the last refusal, and
   * before the chain is closed. If the chain cannot be written, the counts are logged.
   */
  async close(): Promise<void> {
    this.#closed = true;
    this.#cancel?.();
    this.#cancel = undefined;
    await this.#telling;
    if (this.#omitted.empty) return;
    const omitted = this.#take();
    if (!(await this.#tell(omitted))) this.#log(omitted);
  }

  #reasonToLeaveOut(caller: string): LeftOutReason | undefined {
    const state = this.#options.sink?.state ?? "ok";
    if (state === "failing") return "failure";
    if (state !== "ok") return "space";
    const now = this.#options.clock.monotonic();
    const own = this.#callers.of(caller, now);
    if (!own.has(now) || !this.#total.has(now)) return "rate";
    own.take();
    this.#total.take();
    return undefined;
  }

  #arm(): void {
    if (this.#closed) return;
    this.#cancel ??= this.#options.clock.after(this.#summaryMs, () => {
      this.#cancel = undefined;
      this.#telling = this.#summarise().finally(() => {
        this.#telling = undefined;
      });
    });
  }

  async #summarise(): Promise<void> {
    const { sink } = this.#options;
    if (sink === undefined) return this.#log(this.#take());
    // The record cannot be written now: the counts grow within their bounds and are reported later.
    if (sink.state === "full" || sink.state === "failing") return this.#arm();
    const omitted = this.#take();
    if (await this.#tell(omitted)) return;
    omitted.merge(this.#omitted);
    this.#omitted = omitted;
    this.#arm();
  }

  #take(): Omissions {
    const omitted = this.#omitted;
    this.#omitted = new Omissions();
    return omitted;
  }

  #tell(omitted: Omissions): Promise<boolean> {
    const { sink } = this.#options;
    if (sink === undefined) return Promise.resolve(false);
    const event = { type: REFUSALS_LEFT_OUT, fields: this.#fields(omitted) };
    return new Promise((resolve) =>
      sink.append(event, (outcome) => resolve(outcome === "committed")),
    );
  }

  #log(omitted: Omissions): void {
    this.#options.log.warn(this.#fields(omitted), "refusals that have no record of their own");
  }

  #fields(omitted: Omissions): LeftOut {
    return omitted.told(this.#options.of);
  }
}
