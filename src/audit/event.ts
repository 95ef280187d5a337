/** What callers put in the audit chain. */

/** What JSON can say; members that are undefined are left out. */
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
   * Never a key, a token or a prompt: what is written stays for ever. That is the caller's duty.
   */
  readonly fields: { readonly [key: string]: AuditValue };
}

/**
 * What became of a record: `committed`, it is on the disk; `lost`, it is not and work goes on
 * (onFailure: continue); `failed`, it is not and the caller must refuse (onFailure: refuse). A
 * record that is not kept is counted, and told in the chain by a CHAIN.GAP record as soon as the
 * disk is writable again.
 */
export type AppendOutcome = "committed" | "lost" | "failed";
