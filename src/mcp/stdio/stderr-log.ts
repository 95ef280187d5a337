/** What a server writes to its standard error, in our log: at a limited rate, in short lines. */
import { clientText } from "../../platform/client-text.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Logger } from "../../platform/log.ts";

const LINES_PER_PERIOD = 100;
const PERIOD_MS = 60_000;
const MAX_LINE = 1_000;

export class StderrLog {
  readonly #log: Logger;
  readonly #clock: Clock;
  #partial = "";
  #since = -Infinity;
  #lines = 0;
  #omitted = 0;

  constructor(log: Logger, clock: Clock) {
    this.#log = log;
    this.#clock = clock;
  }

  push(part: Buffer): void {
    const lines = (this.#partial + part.toString("utf8")).split("\n");
    this.#partial = (lines.pop() ?? "").slice(0, MAX_LINE);
    for (const line of lines) this.#line(line);
  }

  #line(line: string): void {
    const now = this.#clock.monotonic();
    if (now - this.#since >= PERIOD_MS) {
      if (this.#omitted > 0) this.#log.info({ omitted: this.#omitted }, "lines were left out");
      this.#since = now;
      this.#lines = 0;
      this.#omitted = 0;
    }
    if (this.#lines >= LINES_PER_PERIOD) {
      this.#omitted += 1;
      return;
    }
    this.#lines += 1;
    this.#log.info({ line: clientText(line.slice(0, MAX_LINE)) }, "the MCP server says");
  }
}
