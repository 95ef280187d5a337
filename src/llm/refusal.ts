/** Refusal ends a request before it reaches a provider. */
import type { CallerPolicy } from "../policy/snapshot.ts";
import type { PublicError } from "./dialects/dialect.ts";
import { type ErrorCode, publicError } from "./errors.ts";

export interface RefusalDetails {
  /** For `retry-after`; 0 if waiting does not help. */
  readonly retryAfterMs?: number | undefined;
  /** The refused caller, if the refusal itself determined it. */
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

/** A refused request, in the form for the audit trail. */
export interface RefusedRequest {
  readonly error: PublicError;
  readonly who: Who;
}

/** The sender of a request, as far as it is known. */
export interface Who {
  readonly policy: CallerPolicy | undefined;
  readonly address: string;
  /** The requested model, if it was read. */
  readonly model: string | undefined;
  /** Path without its query, which may contain a key. */
  readonly path: string;
}
