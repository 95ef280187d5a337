/**
 * Workload tokens, which an agent's SDK sends as its API key. They identify the workload and are
 * valid only at the gateway. A token is derived from a key that never leaves the installation's
 * state, so that no token needs to be stored and tokens survive restarts.
 */
import { createHmac } from "node:crypto";
import { base62 } from "./base62.ts";
import { hashKey } from "./credentials.ts";

/** Prefix of every workload token. */
export const WORKLOAD_TOKEN_PREFIX = "svcw_";

/** Minimum length of a key, in bytes. */
const MIN_KEY_BYTES = 32;

export class WorkloadTokens {
  #keys: readonly Uint8Array[];
  #hashes = new Map<string, readonly string[]>();

  /**
   * @param keys each at least 32 random bytes. Tokens are made with the first; those made with the
   * others stay valid, so that a key can be rotated with an overlap
   */
  constructor(...keys: readonly Uint8Array[]) {
    this.#keys = checked(keys);
  }

  /** Replaces the keys. @returns whether they are others than before */
  setKeys(...keys: readonly Uint8Array[]): boolean {
    const next = checked(keys);
    const isSame =
      next.length === this.#keys.length &&
      next.every((key, i) => Buffer.compare(key, this.#keys[i] ?? Buffer.alloc(0)) === 0);
    if (isSame) return false;
    this.#keys = next;
    this.#hashes = new Map();
    return true;
  }

  /** The keys: the first is the current one. The list is another one after each change. */
  get keys(): readonly Uint8Array[] {
    return this.#keys;
  }

  /** `svcw_<random>`. */
  tokenOf(namespace: string, name: string): string {
    return tokenBy(this.#keys[0] as Uint8Array, namespace, name);
  }

  /** SHA-256 (hex) of each valid token, as in the policy snapshot. */
  hashesOf(namespace: string, name: string): readonly string[] {
    const id = `${namespace}/${name}`;
    let hashes = this.#hashes.get(id);
    if (hashes === undefined) {
      hashes = this.#keys.map((key) => hashKey(tokenBy(key, namespace, name)));
      this.#hashes.set(id, hashes);
    }
    return hashes;
  }
}

function checked(keys: readonly Uint8Array[]): readonly Uint8Array[] {
  if (keys.length === 0 || keys.some((key) => key.length < MIN_KEY_BYTES))
    throw new Error("the workload key must have 32 bytes or more");
  return keys;
}

function tokenBy(key: Uint8Array, namespace: string, name: string): string {
  const digest = createHmac("sha256", key).update(`agent\n${namespace}\n${name}`).digest();
  return WORKLOAD_TOKEN_PREFIX + base62(digest);
}
