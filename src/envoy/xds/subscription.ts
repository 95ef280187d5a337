/**
 * One node's subscription to one resource type over delta xDS: the acknowledged, pending and
 * rejected versions. Pure bookkeeping; `ads.ts` does the communication. Protocol:
 * envoyproxy.io/docs, "xDS REST and gRPC protocol", incremental.
 */
import type { EnvoyAnswer } from "../../policy/status.ts";
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

const ACCEPTED: EnvoyAnswer = { kind: "accepted" };

export class Subscription {
  /** undefined: everything (the wildcard). */
  #names: Set<string> | undefined;
  /** Name to the version that the node has, or that was last sent to it. */
  readonly #sent = new Map<string, string>();
  #inFlight:
    | { readonly nonce: string; readonly delta: Delta; readonly names: ReadonlySet<string> }
    | undefined;
  /** Message of the rejection of each resource whose last version was rejected, by its name. */
  readonly #rejected = new Map<string, string>();
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

  /** Returns the node's answer for a resource. */
  answerFor(name: string): EnvoyAnswer {
    if (!this.#sent.has(name)) return { kind: "pending", message: "it was not sent yet" };
    if (this.#inFlight?.names.has(name) === true)
      return { kind: "pending", message: "there is no answer yet" };
    const message = this.#rejected.get(name);
    return message === undefined ? ACCEPTED : { kind: "rejected", message };
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
    this.#inFlight = { nonce, delta, names: new Set(delta.upserts.map(({ name }) => name)) };
    for (const resource of delta.upserts) this.#sent.set(resource.name, resource.version);
    for (const name of delta.removals) {
      this.#sent.delete(name);
      this.#rejected.delete(name);
    }
  }

  /** @returns whether the nonce was the pending one. */
  acknowledged(nonce: string, error: string | undefined): boolean {
    if (this.#inFlight?.nonce !== nonce) return false;
    const names = this.#inFlight.delta.upserts.map((resource) => resource.name);
    this.#inFlight = undefined;
    // Envoy accepts the other resources of a response that it rejects.
    for (const name of names) this.#rejected.delete(name);
    if (error !== undefined)
      for (const [name, message] of rejections(error, names)) this.#rejected.set(name, message);
    if (error !== undefined) this.nack = { message: error, resources: names };
    else this.accepted = true;
    if (error === undefined && this.nack !== undefined) {
      const refused = this.nack.resources.filter((name) => !names.includes(name));
      if (refused.length < this.nack.resources.length || names.length === 0) this.nack = undefined;
    }
    return true;
  }
}

/** Longest part of a rejection's message that is shown with a resource, in characters. */
const MAX_EXCERPT = 1_000;

/** Separators of names in Envoy's messages. */
const WORD = /[^\s,;'"()]+/g;

/**
 * Returns the rejection of each resource that a message names, from its name on; if it names none,
 * the message for all of them.
 */
function rejections(message: string, names: readonly string[]): ReadonlyMap<string, string> {
  const places = new Map<string, number>();
  for (const { 0: word, index } of message.matchAll(WORD)) {
    const name = word.endsWith(":") ? word.slice(0, -1) : word;
    if (!places.has(name)) places.set(name, index);
  }
  const named = names.filter((name) => places.has(name));
  return new Map(
    (named.length > 0 ? named : names).map((name) => {
      const start = places.get(name) ?? 0;
      return [name, message.slice(start, start + MAX_EXCERPT)];
    }),
  );
}
