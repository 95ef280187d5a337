/** Notices that something is not answered in time: one timer for all that is waited for. */
import type { Clock } from "../platform/clock.ts";

export interface Waiting {
  readonly since: number;
}

export class Deadline<W extends Waiting> {
  readonly #clock: Clock;
  readonly #ms: number;
  readonly #late: () => void;
  /** Oldest first. */
  readonly #waiting = new Set<W>();
  #cancel: (() => void) | undefined;
  /** Of waiting: a look that was taken before all was taken away says nothing of what came after. */
  #round = 0;

  /** `late` is called when the oldest has waited for `ms`. */
  constructor(clock: Clock, ms: number, late: () => void) {
    this.#clock = clock;
    this.#ms = ms;
    this.#late = late;
  }

  add(waiting: W): void {
    this.#waiting.add(waiting);
    this.#cancel ??= this.#look(this.#ms);
  }

  done(waiting: W): boolean {
    return this.#waiting.delete(waiting);
  }

  /** All that waited; nothing does any more. */
  takeAll(): readonly W[] {
    const all = [...this.#waiting];
    this.#waiting.clear();
    this.#round++;
    this.#cancel?.();
    this.#cancel = undefined;
    return all;
  }

  /**
   * Our own event loop may be what is late, with the answer long in the socket: a whole round of it, and so a look at
   * every socket, passes before anything is called late.
   */
  #look(ms: number): () => void {
    const round = this.#round;
    return this.#clock.after(ms, () => {
      setImmediate(() => setImmediate(() => {
        if (round === this.#round) this.#judge();
      }));
    });
  }

  #judge(): void {
    this.#cancel = undefined;
    const [oldest] = this.#waiting;
    if (oldest === undefined) return;
    const left = oldest.since + this.#ms - this.#clock.monotonic();
    if (left <= 0) this.#late();
    else this.#cancel = this.#look(Math.ceil(left));
  }
}
