/**
 * Defects are errors that no code expects: bugs of this program. Each one fails what it happened in
 * and nothing else, is counted, and is logged with its stack.
 */
import { Counter, type Registry } from "prom-client";
import type { Logger } from "./log.ts";
import type { TimeSource } from "./clock.ts";

/** A client that can cause a defect can cause many: this many a minute are logged with a stack. */
const LOGGED_PER_MINUTE = 60;
const MINUTE_MS = 60_000;
/** Longest stack that is logged, characters: its message may hold a client's text. */
const MAX_STACK = 4_096;

export interface DefectsOptions {
  readonly log: Logger;
  readonly clock: TimeSource;
  readonly registry: Registry;
}

export class Defects {
  readonly #log: Logger;
  readonly #clock: TimeSource;
  readonly #counter: Counter;
  #minute = Number.NEGATIVE_INFINITY;
  #logged = 0;

  constructor({ log, clock, registry }: DefectsOptions) {
    this.#log = log;
    this.#clock = clock;
    this.#counter = new Counter({
      name: "svc_defects_total",
      help: "Unexpected errors (bugs) by the part they occurred in. Each failed one request closed.",
      labelNames: ["part"],
      registers: [registry],
    });
  }

  /** @param part where errors come from, e.g. `llm`: the label of the metric and in the log */
  reporter(part: string): (error: unknown) => void {
    this.#counter.inc({ part }, 0);
    return (error) => this.#report(part, error);
  }

  #report(part: string, error: unknown): void {
    this.#counter.inc({ part });
    const now = this.#clock.monotonic();
    if (now - this.#minute >= MINUTE_MS) {
      this.#minute = now;
      this.#logged = 0;
    }
    this.#logged += 1;
    if (this.#logged > LOGGED_PER_MINUTE) return;
    const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
    this.#log.error(
      { part, error: stack.slice(0, MAX_STACK) },
      "unexpected error: the request failed closed; please report this stack",
    );
  }
}
