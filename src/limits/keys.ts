/**
 * Names in the store. All keys of a scope have the scope as their hash tag, so that one script may
 * touch them all on a Redis Cluster.
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
  /** Sorted set: id of a lease to when it expires. */
  readonly leases: string;
  /** Hash: id of a lease to what it has reserved. */
  readonly amounts: string;
  /** Hash: sums of what leases have reserved, and how many there are, by account. */
  readonly reserved: string;

  constructor(scope: string) {
    this.#tag = `${PREFIX}{${encoded(scope)}}:`;
    this.leases = `${this.#tag}leases`;
    this.amounts = `${this.#tag}amounts`;
    this.reserved = `${this.#tag}reserved`;
  }

  /** Hash: totals of a day by account, of all and of each process. */
  usage(day: string): string {
    return `${this.#tag}usage:${day}`;
  }

  /** Sorted set: id of an admission to its time. */
  window(account: string, windowMs: number): string {
    return `${this.#tag}window:${windowMs}:${encoded(account)}`;
  }
}

/** What the probe writes; a scope of its own. */
export function probeKey(processId: string): string {
  return `${PREFIX}{probe/${encoded(processId)}}`;
}
