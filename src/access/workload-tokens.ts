/**
 * Workload tokens: what an agent's SDK sends as its API key. They name the workload and open nothing else. A token is
 * derived from a key that never leaves the gateway's state, so that nothing has to be stored for each agent and a
 * restart changes none.
 */
import { createHmac } from "node:crypto";
import { hashKey } from "./credentials.ts";

const PREFIX = "svcw_";
const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** 256 bits in base 62: 43 characters. */
function base62(bytes: Uint8Array): string {
  let value = BigInt(`0x${Buffer.from(bytes).toString("hex")}`);
  let text = "";
  while (text.length < 43) {
    text = BASE62.charAt(Number(value % 62n)) + text;
    value /= 62n;
  }
  return text;
}

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
    return PREFIX + base62(createHmac("sha256", this.#key).update(`agent\n${namespace}\n${name}`).digest());
  }

  /** SHA-256 (hex) of the token: what the policy snapshot knows. */
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
