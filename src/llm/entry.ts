/** Entry is what a request holds from its headers on. Its call takes it over, or it is released. */
import type { ByteLease } from "../limits/bytes-in-flight.ts";
import type { Lease, Limits } from "../limits/limits.ts";

export class Entry {
  readonly bytes: ByteLease;
  /** undefined where no limit is to be checked. */
  readonly lease: Lease | undefined;
  readonly #limits: Limits;

  constructor(bytes: ByteLease, lease: Lease | undefined, limits: Limits) {
    this.bytes = bytes;
    this.lease = lease;
    this.#limits = limits;
  }

  /** The request ends before it becomes a call: only its place in the rate's window stays taken. */
  release(): void {
    this.bytes.release();
    if (this.lease !== undefined) this.#limits.settle(this.lease, NOTHING);
  }
}

const NOTHING = { tokens: 0, microUsd: 0, requests: 0, unpriced: false };
