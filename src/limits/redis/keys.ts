/**
 * Key names in the store. All keys of a scope have the scope as their hash tag, so that one script
 * may use them all on a Redis Cluster.
 */

/** `{` and `}` would end the hash tag, `|` separates fields. */
const RESERVED = /[%|{}]/g;

export function encoded(part: string): string {
  return part.replace(
    RESERVED,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

const PREFIX = "svc:";

export class ScopeKeys {
  readonly #tag: string;
  /** Sorted set: lease id to expiry time. */
  readonly leases: string;
  /** Hash: lease id to reserved amounts. */
  readonly amounts: string;
  /** Hash: sums of the reserved amounts and number of leases, by account. */
  readonly reserved: string;

  constructor(scope: string) {
    this.#tag = `${PREFIX}{${encoded(scope)}}:`;
    this.leases = `${this.#tag}leases`;
    this.amounts = `${this.#tag}amounts`;
    this.reserved = `${this.#tag}reserved`;
  }

  /** Hash: totals of a day by account, in total and per process. */
  usage(day: string): string {
    return `${this.#tag}usage:${day}`;
  }

  /** Sorted set: admission id to its time. */
  window(account: string, windowMs: number): string {
    return `${this.#tag}window:${windowMs}:${encoded(account)}`;
  }
}

/** Returns the key that the probe writes, in a scope of its own. */
export function probeKey(processId: string): string {
  return `${PREFIX}{probe/${encoded(processId)}}`;
}
