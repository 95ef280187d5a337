/** Events that callers append to the audit chain. */

/** A value that JSON can represent; undefined members are omitted. */
export type AuditValue =
  | string
  | number
  | boolean
  | null
  | undefined
  | readonly AuditValue[]
  | { readonly [key: string]: AuditValue };

export interface AuditEvent {
  /** For example LLM_CALL. `CHAIN.` is the writer's own prefix. */
  readonly type: string;
  /**
   * Must never contain a key, a token or a prompt, because records are kept forever. The caller is
   * responsible for this.
   */
  readonly fields: { readonly [key: string]: AuditValue };
}

/**
 * Outcome of a record: `committed`, it is on the disk; `lost`, it is not and work continues
 * (onFailure: continue); `failed`, it is not and the caller must refuse (onFailure: refuse).
 * Records that could not be written are counted, and a CHAIN.GAP record states their number as soon
 * as the disk is writable again.
 */
export type AppendOutcome = "committed" | "lost" | "failed";
