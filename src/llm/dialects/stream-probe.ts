/** StreamProbe reads the usage, the end and the errors of a stream that passes unchanged. */
import type { Usage } from "./dialect.ts";

/** Result of a probe for one event. */
export type ChunkVerdict =
  | { readonly kind: "pass" }
  /** The event is hidden from this client. */
  | { readonly kind: "hide" }
  | { readonly kind: "error"; readonly message: string };

/** Inspects a stream of its own dialect. */
export interface StreamProbe {
  /** Counts a block of whole events; returns false if `event` must inspect one of them. */
  isPlain(block: Buffer): boolean;
  event(name: string | undefined, data: string): ChunkVerdict;
  /** Whether the dialect's final events have arrived. */
  readonly complete: boolean;
  readonly usage: Usage | undefined;
  readonly usageIsFinal: boolean;
  readonly outputBytes: number;
  readonly sawContent: boolean;
}

export const PASS: ChunkVerdict = { kind: "pass" };
export const HIDE: ChunkVerdict = { kind: "hide" };
