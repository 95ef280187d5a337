/** The sessions of one side that this process holds, with their bounds. */
import { randomBytes } from "node:crypto";
import type { BridgeLimits } from "./limits.ts";
import type { BridgeMetrics, BridgeSide } from "./metrics.ts";

const ID_BYTES = 32;
const ID = /^[A-Za-z0-9_-]{43}$/;

/** Returns 256 random bits in base64url. */
export function newSessionId(): string {
  return randomBytes(ID_BYTES).toString("base64url");
}

export function isSessionId(text: string | undefined | null): text is string {
  return typeof text === "string" && ID.test(text);
}

/** Which bound has been reached: the owner's, or that of all. */
export type FullTable = "owner" | "all";

export class SessionTable<S extends { readonly id: string; readonly owner: string }> {
  readonly #side: BridgeSide;
  readonly #limits: BridgeLimits;
  readonly #metrics: BridgeMetrics;
  readonly #sessions = new Map<string, S>();
  readonly #perOwner = new Map<string, number>();

  constructor(side: BridgeSide, limits: BridgeLimits, metrics: BridgeMetrics) {
    this.#side = side;
    this.#limits = limits;
    this.#metrics = metrics;
  }

  /** @returns undefined if the owner may open another session */
  full(owner: string): FullTable | undefined {
    if ((this.#perOwner.get(owner) ?? 0) >= this.#limits.sessionsPerOwner) return "owner";
    return this.#sessions.size >= this.#limits.sessions ? "all" : undefined;
  }

  add(session: S): void {
    this.#sessions.set(session.id, session);
    this.#perOwner.set(session.owner, (this.#perOwner.get(session.owner) ?? 0) + 1);
    this.#metrics.sessions.set({ side: this.#side }, this.#sessions.size);
  }

  get(id: string): S | undefined {
    return this.#sessions.get(id);
  }

  delete({ id, owner }: S): void {
    if (!this.#sessions.delete(id)) return;
    const left = (this.#perOwner.get(owner) ?? 1) - 1;
    if (left === 0) this.#perOwner.delete(owner);
    else this.#perOwner.set(owner, left);
    this.#metrics.sessions.set({ side: this.#side }, this.#sessions.size);
  }

  all(): readonly S[] {
    return [...this.#sessions.values()];
  }
}
