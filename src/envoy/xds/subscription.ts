/**
 * One node's subscription to one resource type over delta xDS: the acknowledged, pending and
 * rejected versions. Pure bookkeeping; `ads.ts` does the communication. Protocol:
 * envoyproxy.io/docs, "xDS REST and gRPC protocol", incremental.
 */
import type { VersionedResource } from "./snapshot.ts";

export interface Delta {
  readonly upserts: readonly VersionedResource[];
  readonly removals: readonly string[];
}

export interface Nack {
  readonly message: string;
  /** Names in the rejected response. */
  readonly resources: readonly string[];
}

export class Subscription {
  /** undefined: everything (the wildcard). */
  #names: Set<string> | undefined;
  /** Name to the version that the node has, or that was last sent to it. */
  readonly #sent = new Map<string, string>();
  #inFlight: { readonly nonce: string; readonly delta: Delta } | undefined;
  nack: Nack | undefined;
  /** The node has accepted a response, or connected with resources of an earlier connection. */
  accepted: boolean;

  constructor(subscribe: readonly string[], initialVersions: Readonly<Record<string, string>>) {
    this.#names =
      subscribe.length === 0 || subscribe.includes("*") ? undefined : new Set(subscribe);
    for (const [name, version] of Object.entries(initialVersions)) this.#sent.set(name, version);
    this.accepted = this.#sent.size > 0;
  }

  /** A later request of the same stream may change the names. */
  resubscribe(add: readonly string[], drop: readonly string[]): void {
    if (add.includes("*")) this.#names = undefined;
    else if (add.length > 0) {
      this.#names ??= new Set();
      for (const name of add) {
        this.#names.add(name);
        this.#sent.delete(name); // requested again: send it again
      }
    }
    for (const name of drop) {
      this.#names?.delete(name);
      this.#sent.delete(name);
    }
  }

  get waiting(): boolean {
    return this.#inFlight !== undefined;
  }

  /** Returns the difference between `wanted` and the node's state; undefined if there is none. */
  pending(
    wanted: ReadonlyMap<string, VersionedResource>,
    withRemovals: boolean,
  ): Delta | undefined {
    const upserts: VersionedResource[] = [];
    for (const resource of wanted.values()) {
      if (this.#names !== undefined && !this.#names.has(resource.name)) continue;
      if (this.#sent.get(resource.name) !== resource.version) upserts.push(resource);
    }
    const removals = withRemovals ? [...this.#sent.keys()].filter((name) => !wanted.has(name)) : [];
    return upserts.length === 0 && removals.length === 0 ? undefined : { upserts, removals };
  }

  /** Notes a response that is being sent. A rejected version is not sent again until it changes. */
  sending(nonce: string, delta: Delta): void {
    this.#inFlight = { nonce, delta };
    for (const resource of delta.upserts) this.#sent.set(resource.name, resource.version);
    for (const name of delta.removals) this.#sent.delete(name);
  }

  /** @returns whether the nonce was the pending one. */
  acknowledged(nonce: string, error: string | undefined): boolean {
    if (this.#inFlight?.nonce !== nonce) return false;
    const names = this.#inFlight.delta.upserts.map((resource) => resource.name);
    this.#inFlight = undefined;
    if (error !== undefined) this.nack = { message: error, resources: names };
    else this.accepted = true;
    if (error === undefined && this.nack !== undefined) {
      const refused = this.nack.resources.filter((name) => !names.includes(name));
      if (refused.length < this.nack.resources.length || names.length === 0) this.nack = undefined;
    }
    return true;
  }
}
