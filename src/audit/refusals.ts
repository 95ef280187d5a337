/**
 * Refusals on their way into the audit chain. A refused request costs its sender almost nothing, so
 * its record must cost the disk no more: nobody waits for it, and only so many in a second get a
 * record of their own, for each caller and in total. The others are counted, and one record in a
 * while says how many there were, of whom and why. Completed calls do not come here.
 */
import { Counter, type Registry } from "prom-client";
import type { Clock } from "../platform/clock.ts";
import type { Logger } from "../platform/log.ts";
import { Budget, CallerBudgets, type Rate } from "./refusal-budgets.ts";
import type { AuditEvent } from "./event.ts";
import { type LeftOut, type LeftOutReason, Omissions } from "./omissions.ts";
import type { AuditSink } from "./sink.ts";

/** Type of the records that say what was left out. */
export const REFUSALS_LEFT_OUT = "REFUSALS_LEFT_OUT";

export interface RefusalLimits {
  /** Records of one caller. */
  readonly caller: Rate;
  /** Records of all callers together. */
  readonly total: Rate;
  /** Callers that have a budget of their own at a time; more share one. */
  readonly callers: number;
  /** Longest time between a refusal that is left out and the record that tells of it. */
  readonly summaryMs: number;
}

/**
 * At their largest, refusals come to some 1.5 KB each: 130 MB a day of one caller, 1.3 GB of all. The
 * bursts are for people who try something by hand, and for a client's start with a wrong setting.
 */
export const REFUSAL_LIMITS: RefusalLimits = {
  caller: { perSecond: 1, burst: 60 },
  total: { perSecond: 10, burst: 300 },
  callers: 1_000,
  summaryMs: 60_000,
};

export interface RefusalLogOptions {
  /** undefined where nothing is recorded (`--no-audit`): what was left out is then logged. */
  readonly sink: AuditSink | undefined;
  /** Type of the records of single refusals, e.g. `LLM_REFUSED`. */
  readonly of: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly registry: Registry;
  readonly limits?: Partial<RefusalLimits>;
}

export interface Refusal {
  /** Who was refused: a name of ours, never a client's text. Callers that are not known are one. */
  readonly caller: string;
  readonly code: string;
  /** Makes the refusal's own record, where it gets one. */
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
  /** The record that is being written. */
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
      help: "Refusals without an audit record of their own, by reason (rate, space: the volume is low, failure: the chain cannot be written).",
      labelNames: ["reason"],
      registers: [options.registry],
    });
    for (const reason of Object.keys(this.#counts)) this.#counter.inc({ reason }, 0);
  }

  /** Refusals left out since the start, by reason. */
  get leftOut(): Readonly<Record<LeftOutReason, number>> {
    return { ...this.#counts };
  }

  /** @returns whether the refusal got a record of its own */
  record({ caller, code, event }: Refusal): boolean {
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
   * Records what was left out and not told yet. Call it after the last refusal, and before the chain
   * is closed. Where the chain cannot take it, it is logged.
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
    // There is no place for it now: it grows no further than its bounds, and is told later.
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
