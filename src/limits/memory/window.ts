/** The admissions of the last `windowMs`: an exact sliding window. */

export interface WindowEntry {
  readonly id: string;
  readonly at: number;
}

/**
 * Removed entries are deleted when there are at least this many, and they are half of the array.
 */
const COMPACT_AT = 64;

export class SlidingWindow {
  readonly account: string;
  readonly windowMs: number;
  /** By time, from `#first` on. */
  #entries: WindowEntry[] = [];
  #first = 0;

  constructor(account: string, windowMs: number) {
    this.account = account;
    this.windowMs = windowMs;
  }

  add(entry: WindowEntry): void {
    this.count(entry.at);
    let place = this.#entries.length;
    // Only a clock that was set back makes this loop run.
    while (place > this.#first && (this.#entries[place - 1] as WindowEntry).at > entry.at) place--;
    if (place === this.#entries.length) this.#entries.push(entry);
    else this.#entries.splice(place, 0, entry);
  }

  /** Returns the number of entries in the window that ends now. Removes older entries. */
  count(now: number): number {
    const entries = this.#entries;
    while (
      this.#first < entries.length &&
      (entries[this.#first] as WindowEntry).at <= now - this.windowMs
    )
      this.#first++;
    // Entries from a clock that was set back by more than a window: they would count until the
    // clock catches up.
    while (entries.length > this.#first && (entries.at(-1) as WindowEntry).at > now + this.windowMs)
      entries.pop();
    if (this.#first >= COMPACT_AT && this.#first * 2 >= entries.length) {
      this.#entries = entries.slice(this.#first);
      this.#first = 0;
    }
    return this.#entries.length - this.#first;
  }

  /**
   * Returns the time until one more entry fits under `limit`. Call it right after {@link count}.
   */
  retryAfterMs(now: number, limit: number): number {
    const leaver = this.#entries[this.#entries.length - limit];
    return leaver === undefined ? this.windowMs : Math.max(1, leaver.at + this.windowMs - now);
  }

  entries(now: number): readonly WindowEntry[] {
    this.count(now);
    return this.#entries.slice(this.#first);
  }
}
