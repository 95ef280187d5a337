/**
 * Deadline detects missing answers, with one timer for all of them.
 *
 * It must not mistake delays of this process for delays of others. Time in which this process did
 * not run (a long turn of the event loop, a processor used by others, a paused machine) says
 * nothing about the peer: a check counts at most its own interval and a small slack. Before an
 * answer is considered late, every socket is read once more, because the answer may have arrived.
 */
import type { Clock } from "../../platform/clock.ts";

/** Number of checks within one deadline. */
const LOOKS = 4;
/** Factor by which a timer may be late and still count in full. */
const SLACK = 1.25;

export class Deadline<W> {
  readonly #clock: Clock;
  readonly #ms: number;
  readonly #stepMs: number;
  readonly #late: () => void;
  /** Oldest first, with the counted time at which the wait began. */
  readonly #waiting = new Map<W, number>();
  #cancel: (() => void) | undefined;
  /**
   * Round of waiting: a check that began before everything was removed does not apply to later
   * entries.
   */
  #round = 0;
  /** Counted time up to the last check. */
  #counted = 0;
  #lookedAt = 0;

  /** Calls `late` when the oldest entry has waited for `ms`. */
  constructor(clock: Clock, ms: number, late: () => void) {
    this.#clock = clock;
    this.#ms = ms;
    this.#stepMs = Math.max(1, Math.floor(ms / LOOKS));
    this.#late = late;
  }

  /** Starts to wait for an entry, unless it is already waited for. */
  add(waiting: W): void {
    if (this.#waiting.has(waiting)) return;
    if (this.#cancel === undefined) this.#look();
    this.#waiting.set(waiting, this.#counted + this.#sinceLook());
  }

  done(waiting: W): boolean {
    return this.#waiting.delete(waiting);
  }

  /** Removes and returns all entries. */
  takeAll(): readonly W[] {
    const all = [...this.#waiting.keys()];
    this.#waiting.clear();
    this.#round++;
    this.#cancel?.();
    this.#cancel = undefined;
    return all;
  }

  #sinceLook(): number {
    return Math.min(this.#clock.monotonic() - this.#lookedAt, this.#stepMs * SLACK);
  }

  #look(): void {
    const round = this.#round;
    this.#lookedAt = this.#clock.monotonic();
    this.#cancel = this.#clock.after(this.#stepMs, () => {
      this.#counted += this.#sinceLook();
      // Sockets are read between a timer and the second immediate after it.
      setImmediate(() =>
        setImmediate(() => {
          if (round === this.#round) this.#judge();
        }),
      );
    });
  }

  #judge(): void {
    this.#cancel = undefined;
    const [oldest] = this.#waiting.values();
    if (oldest === undefined) return;
    if (this.#counted - oldest >= this.#ms) this.#late();
    else this.#look();
  }
}
