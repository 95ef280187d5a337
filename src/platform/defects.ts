/**
 * Defects are errors that no code expects, that is, bugs of this program. Each one fails only the
 * operation in which it occurred, is counted, and is logged with its stack.
 */
import { Counter, type Registry } from "prom-client";
import type { Logger } from "./log.ts";
import type { TimeSource } from "./clock.ts";

/**
 * Maximum number of defects per minute that are logged with a stack, because one client can cause
 * many.
 */
const LOGGED_PER_MINUTE = 60;
const MINUTE_MS = 60_000;
/** Maximum length of a logged stack in characters: its message may contain a client's text. */
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
      help:
        "Unexpected errors (bugs) by the part they occurred in. Each failed one request " +
        "closed.",
      labelNames: ["part"],
      registers: [registry],
    });
  }

  /**
   * @param part source of the errors, e.g. `llm`; used as the label of the metric and in the log
   */
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
