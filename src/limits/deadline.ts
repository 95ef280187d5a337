/**
 * Notices that something is not answered in time: one timer for all that is waited for.
 *
 * It must not take our own lateness for somebody else's. Time in which this process did not run (a
 * long turn of the event loop, a processor that others have, a machine that was paused) says
 * nothing about who should have answered: it counts as little. And before anything is called late,
 * every socket is looked at once more: the answer may be there.
 */
import type { Clock } from "../platform/clock.ts";

/** Looks in the time of the deadline. */
const LOOKS = 4;
/** How much later than asked for a timer may be and count in full. */
const SLACK = 1.25;

export class Deadline<W> {
  readonly #clock: Clock;
  readonly #ms: number;
  readonly #stepMs: number;
  readonly #late: () => void;
  /** Oldest first, with the time that had been counted when its waiting began. */
  readonly #waiting = new Map<W, number>();
  #cancel: (() => void) | undefined;
  /**
   * Of waiting: a look that was taken before all was taken away says nothing of what came after.
   */
  #round = 0;
  /** Time that counts, up to the last look. */
  #counted = 0;
  #lookedAt = 0;

  /** `late` is called when the oldest has waited for `ms`. */
  constructor(clock: Clock, ms: number, late: () => void) {
    this.#clock = clock;
    this.#ms = ms;
    this.#stepMs = Math.max(1, Math.floor(ms / LOOKS));
    this.#late = late;
  }

  /** Waits for it, if it is not waited for already. */
  add(waiting: W): void {
    if (this.#waiting.has(waiting)) return;
    if (this.#cancel === undefined) this.#look();
    this.#waiting.set(waiting, this.#counted + this.#sinceLook());
  }

  done(waiting: W): boolean {
    return this.#waiting.delete(waiting);
  }

  /** All that waited; nothing does any more. */
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
