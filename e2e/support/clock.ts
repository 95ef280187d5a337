/** Sets the time of day for a whole gateway process that is started with its `env`. */
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { DAY_MS } from "../../src/limits/memory/day.ts";
import { preloadGateway } from "./preload.ts";

export class TimeOfDay {
  readonly #dir = mkdtempSync(path.join(os.tmpdir(), "svc-clock-"));
  readonly #file = path.join(this.#dir, "moved-ms");
  /** The machine's day when the test began, so that the result does not depend on the day. */
  readonly #today = Math.floor(Date.now() / DAY_MS) * DAY_MS;

  constructor() {
    this.set("12:00:00");
  }

  get env(): Readonly<Record<string, string>> {
    return { ...preloadGateway("clock-preload.mjs"), SVC_E2E_CLOCK: this.#file };
  }

  /** @param time `HH:MM:SS`, UTC, from which the clock continues */
  set(time: string, daysLater = 0): void {
    const at = this.#today + daysLater * DAY_MS + Date.parse(`1970-01-01T${time}Z`);
    writeFileSync(`${this.#file}.new`, String(at - Date.now()));
    renameSync(`${this.#file}.new`, this.#file);
  }

  close(): void {
    rmSync(this.#dir, { recursive: true, force: true });
  }
}
