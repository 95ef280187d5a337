/** Changes of a scope that the store does not have yet. */
import type { DayAccount } from "../memory/day-account.ts";
import type { HeldLease } from "../memory/held-lease.ts";
import type { SlidingWindow, WindowEntry } from "../memory/window.ts";

export interface WindowNews {
  readonly window: SlidingWindow;
  readonly entry: WindowEntry;
}

export class Outbox {
  readonly ended = new Set<string>();
  readonly live = new Set<HeldLease>();
  readonly totals = new Set<DayAccount>();
  readonly admissions: WindowNews[] = [];
  /** Admissions that the store made after we had stopped waiting, and that were refused here. */
  readonly takenBack: WindowNews[] = [];

  get empty(): boolean {
    return (
      this.ended.size === 0 &&
      this.live.size === 0 &&
      this.totals.size === 0 &&
      this.admissions.length === 0 &&
      this.takenBack.length === 0
    );
  }

  clear(): void {
    this.ended.clear();
    this.live.clear();
    this.totals.clear();
    this.admissions.length = 0;
    this.takenBack.length = 0;
  }
}
