/**
 * Workload tokens, which an agent's SDK sends as its API key. They identify the workload and are
 * valid only at the gateway. A token is derived from a key that never leaves the gateway's state,
 * so that no token needs to be stored and tokens survive restarts.
 */
import { createHmac } from "node:crypto";
import { base62 } from "./base62.ts";
import { hashKey } from "./credentials.ts";

/** Prefix of every workload token. */
export const WORKLOAD_TOKEN_PREFIX = "svcw_";

export class WorkloadTokens {
  readonly #key: Uint8Array;
  readonly #hashes = new Map<string, string>();

  /** @param key at least 32 random bytes */
  constructor(key: Uint8Array) {
    if (key.length < 32) throw new Error("the workload key must have 32 bytes or more");
    this.#key = key;
  }

  /** `svcw_<random>`. */
  tokenOf(namespace: string, name: string): string {
    return (
      WORKLOAD_TOKEN_PREFIX +
      base62(createHmac("sha256", this.#key).update(`agent\n${namespace}\n${name}`).digest())
    );
  }

  /** SHA-256 (hex) of the token, as in the policy snapshot. */
  hashOf(namespace: string, name: string): string {
    const id = `${namespace}/${name}`;
    let hash = this.#hashes.get(id);
    if (hash === undefined) {
      hash = hashKey(this.tokenOf(namespace, name));
      this.#hashes.set(id, hash);
    }
    return hash;
  }
}
