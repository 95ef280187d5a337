/**
 * RequestGuard runs everything on behalf of one request: an error there goes to `onDefect`, and
 * never to the event loop, where it would end the process and every other request. It also measures
 * the time that this work takes.
 */
import type { Clock } from "../../platform/clock.ts";

export class RequestGuard {
  readonly #clock: Clock;
  readonly #onDefect: (error: unknown) => void;
  #running = false;
  #charge: ((ms: number) => void) | undefined;
  /** Milliseconds of work done before the caller was known. */
  #unchargedMs = 0;

  constructor(clock: Clock, onDefect: (error: unknown) => void) {
    this.#clock = clock;
    this.#onDefect = onDefect;
  }

  run(action: () => void): void {
    // The work of a nested callback is part of the outer callback's work.
    const outermost = !this.#running;
    this.#running = true;
    const began = this.#clock.monotonic();
    try {
      action();
    } catch (error) {
      this.#onDefect(error);
    }
    if (!outermost) return;
    this.#running = false;
    this.#worked(this.#clock.monotonic() - began);
  }

  /**
   * Passes the milliseconds of the request's work, including those before this call, to `charge`.
   */
  chargeTo(charge: (ms: number) => void): void {
    this.#charge = charge;
    charge(this.#unchargedMs);
    this.#unchargedMs = 0;
  }

  /** Returns `callback` under this guard, for an event source that calls it later. */
  guard<A extends readonly unknown[]>(callback: (...args: A) => void): (...args: A) => void {
    return (...args) => this.run(() => callback(...args));
  }

  /** Calls `callback` after `ms` milliseconds; the returned function cancels it. */
  after(ms: number, callback: () => void): () => void {
    return this.#clock.after(ms, this.guard(callback));
  }

  /** Calls `callback` with the promise's value. A rejection is a defect too. */
  when<T>(promise: Promise<T>, callback: (value: T) => void): void {
    promise.then(this.guard(callback), this.#onDefect);
  }

  #worked(ms: number): void {
    if (this.#charge === undefined) this.#unchargedMs += ms;
    else this.#charge(ms);
  }
}
