/** The admissions of the last `windowMs`: an exact sliding window. */

export interface WindowEntry {
  readonly id: string;
  readonly at: number;
}

/** Taken entries are cut off when they are at least this many, and half of the array. */
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

  /** How many are in the window that ends now. What has left it is forgotten. */
  count(now: number): number {
    const entries = this.#entries;
    while (
      this.#first < entries.length &&
      (entries[this.#first] as WindowEntry).at <= now - this.windowMs
    )
      this.#first++;
    // From a clock that was set back by more than a window: they would count for as long as it was
    // set back.
    while (entries.length > this.#first && (entries.at(-1) as WindowEntry).at > now + this.windowMs)
      entries.pop();
    if (this.#first >= COMPACT_AT && this.#first * 2 >= entries.length) {
      this.#entries = entries.slice(this.#first);
      this.#first = 0;
    }
    return this.#entries.length - this.#first;
  }

  /** When there is room for one more under `limit`. Right after {@link count}. */
  retryAfterMs(now: number, limit: number): number {
    const leaver = this.#entries[this.#entries.length - limit];
    return leaver === undefined ? this.windowMs : Math.max(1, leaver.at + this.windowMs - now);
  }

  entries(now: number): readonly WindowEntry[] {
    this.count(now);
    return this.#entries.slice(this.#first);
  }
}
