/** Holds the current snapshot. Replaced as a whole; a request reads it once, at its start. */
import { EMPTY_SNAPSHOT, type PolicySnapshot } from "./snapshot.ts";

export class PolicyStore {
  #current: PolicySnapshot = EMPTY_SNAPSHOT;

  get current(): PolicySnapshot {
    return this.#current;
  }

  swap(next: PolicySnapshot): void {
    this.#current = next;
  }
}
