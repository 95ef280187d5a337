/**
 * Entry holds the resources of a request from its headers on. Its call takes them over, or they are
 * released.
 */
import { type Lease, type Limits, NOTHING_USED } from "../../limits/contract.ts";
import type { ByteLease } from "../../limits/load/bytes-in-flight.ts";

export class Entry {
  readonly bytes: ByteLease;
  /** undefined if there is no limit to check. */
  readonly lease: Lease | undefined;
  readonly #limits: Limits;

  constructor(bytes: ByteLease, lease: Lease | undefined, limits: Limits) {
    this.bytes = bytes;
    this.lease = lease;
    this.#limits = limits;
  }

  /**
   * Releases the resources of a request that does not become a call: it only remains counted in the
   * rate window.
   */
  release(): void {
    this.bytes.release();
    if (this.lease !== undefined) this.#limits.settle(this.lease, NOTHING_USED);
  }
}
