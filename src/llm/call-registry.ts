/** Calls under way by id, for the attempt processor and the failure reports. */
import type { Call } from "./call.ts";

export class CallRegistry {
  readonly #calls = new Map<string, Call>();

  get size(): number {
    return this.#calls.size;
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
