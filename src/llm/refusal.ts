/** Refusal ends a request before a provider sees it. */
import type { CallerPolicy } from "../policy/snapshot.ts";
import type { PublicError } from "./dialects/dialect.ts";
import { type ErrorCode, publicError } from "./errors.ts";

export interface RefusalDetails {
  /** For `retry-after`; 0 where waiting changes nothing. */
  readonly retryAfterMs?: number | undefined;
  /** Who was refused, where the refusal itself found that out. */
  readonly policy?: CallerPolicy | undefined;
}

export class Refusal {
  readonly error: PublicError;
  readonly retryAfterMs: number | undefined;
  readonly policy: CallerPolicy | undefined;

  constructor(error: PublicError, { retryAfterMs, policy }: RefusalDetails = {}) {
    this.error = error;
    this.retryAfterMs = retryAfterMs;
    this.policy = policy;
  }
}

export function refuse(code: ErrorCode, message: string, param?: string): Refusal {
  return new Refusal(publicError(code, message, param));
}

/** A request that was refused, as the audit trail records it. */
export interface RefusedRequest {
  readonly error: PublicError;
  readonly who: Who;
}

/** Who a request comes from, as far as it is known. */
export interface Who {
  readonly policy: CallerPolicy | undefined;
  readonly address: string;
  /** The model that was asked for, where that was read. */
  readonly model: string | undefined;
  /** Without its query, which may hold a key. */
  readonly path: string;
}
