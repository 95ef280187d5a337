/** Counts the agent's name look-ups, and logs those of names that do not exist for it. */
import { Counter, type Registry } from "prom-client";
import { Budget, type Rate } from "../../audit/refusals/refusal-budgets.ts";
import { clientText } from "../../platform/client-text.ts";
import type { TimeSource } from "../../platform/clock.ts";
import type { Logger } from "../../platform/log.ts";
import type { DnsAnswer } from "./answer.ts";
import { Type } from "./message.ts";

/** Types with a label of their own; those of all others are `other`. */
const TYPES = new Map<number, string>(Object.entries(Type).map(([name, type]) => [type, name]));

/** Rate of the log lines: their number must not grow with that of the queries. */
const LINES: Rate = { perSecond: 1, burst: 20 };

export interface DnsReportOptions {
  readonly registry: Registry;
  readonly clock: TimeSource;
  readonly log: Logger;
}

export class DnsReport {
  readonly #options: DnsReportOptions;
  readonly #queries: Counter;
  readonly #lines = new Budget(LINES);
  /** Look-ups without a line since the last one. */
  #omitted = 0;

  constructor(options: DnsReportOptions) {
    this.#options = options;
    this.#queries = new Counter({
      name: "svc_binding_dns_queries_total",
      help:
        "The agent's DNS queries by type (A, AAAA, SVCB, HTTPS, ANY, other, none) and outcome " +
        "(bound, listed, unknown: NXDOMAIN, unavailable: SERVFAIL, refused: another class, " +
        "malformed, dropped: above the rate).",
      labelNames: ["type", "outcome"],
      registers: [options.registry],
    });
  }

  answered({ outcome, query }: DnsAnswer): void {
    const type = query === undefined ? "none" : (TYPES.get(query.type) ?? "other");
    this.#queries.inc({ type, outcome });
    if (outcome === "bound" || outcome === "listed") return;
    const { log, clock } = this.#options;
    const now = clock.monotonic();
    if (!this.#lines.has(now)) {
      this.#omitted += 1;
      return;
    }
    this.#lines.take();
    const asked =
      query === undefined
        ? {}
        : { name: clientText(query.name), type: TYPES.get(query.type) ?? query.type };
    const omitted = this.#omitted === 0 ? {} : { omitted: this.#omitted };
    this.#omitted = 0;
    log.info({ ...asked, outcome, ...omitted }, "name look-up not answered with an address");
  }

  /** Called for a query that is not read, because there are too many. */
  dropped(): void {
    this.#queries.inc({ type: "none", outcome: "dropped" });
  }
}
