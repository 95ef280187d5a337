/** Calls under way by id, for the attempt processor and the failure reports. */
import type { Call } from "./call.ts";

export class CallRegistry {
  readonly #calls = new Map<string, Call>();
  /** Requests whose stages run, and scans of answers that were forwarded. */
  readonly #besides = new Set<object>();

  get size(): number {
    return this.#calls.size;
  }

  /** Number of everything that a gateway which ends has to wait for. */
  get underWay(): number {
    return this.#calls.size + this.#besides.size;
  }

  /** Counts work that is no call yet, or no longer, until {@link leave}. */
  enter(work: object): void {
    this.#besides.add(work);
  }

  leave(work: object): void {
    this.#besides.delete(work);
  }

  add(call: Call): void {
    this.#calls.set(call.request.id, call);
  }

  get(id: string): Call | undefined {
    return this.#calls.get(id);
  }

  remove(call: Call): void {
    this.#calls.delete(call.request.id);
  }
}
