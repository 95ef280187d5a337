/** Refusals: how a request ends before an upstream sees it, on every surface of the gateway. */
import type { AuditEvent } from "../audit/event.ts";
import { clientText, optionalClientText } from "../platform/client-text.ts";
import { callerFields } from "./caller.ts";
import type { CallerPolicy } from "../policy/snapshot.ts";
import { type ErrorCode, publicError, type PublicError } from "./errors.ts";

export interface RefusalDetails {
  /** For `retry-after`; 0 where waiting changes nothing. */
  readonly retryAfterMs?: number | undefined;
  /** The caller, where the refusal itself found out who it is. */
  readonly policy?: CallerPolicy | undefined;
  /** Member `detail` of the body, beside the error itself. */
  readonly detail?: object | undefined;
}

/** Refusal ends a request with an error of the gateway. */
export class Refusal {
  readonly error: PublicError;
  readonly retryAfterMs: number | undefined;
  readonly policy: CallerPolicy | undefined;
  readonly detail: object | undefined;

  constructor(error: PublicError, { retryAfterMs, policy, detail }: RefusalDetails = {}) {
    this.error = error;
    this.retryAfterMs = retryAfterMs;
    this.policy = policy;
    this.detail = detail;
  }
}

/** Returns the body of an error with its member `detail`, if it has one. */
export function bodyWithDetail(body: string, detail: object | undefined): string {
  return detail === undefined ? body : JSON.stringify({ ...JSON.parse(body), detail });
}

/** Returns a refusal without details. */
export function refuse(code: ErrorCode, message: string, param?: string): Refusal {
  return new Refusal(publicError(code, message, param));
}

/** Names an answer: the gateway's log and audit records contain it. */
export const CALL_ID = "x-svc-call-id";

type HeaderPair = readonly [name: string, value: string];

/**
 * Returns the headers of the answer to a refused request, on every surface.
 *
 * @param callId identifies the request in our log
 */
export function refusalHeaders({ retryAfterMs }: Refusal, callId: string): readonly HeaderPair[] {
  return [
    ["content-type", "application/json"],
    [CALL_ID, callId],
    ...(retryAfterMs === undefined ? [] : retryHeaders(retryAfterMs)),
  ];
}

/** For longer waits the vendors' SDKs retry at once instead, which is useless. */
const LONGEST_SDK_WAIT_MS = 60_000;

/**
 * `retry-after` in seconds (RFC 9110 section 10.2.3); 0 if waiting does not help. OpenAI's and
 * Anthropic's SDKs respect `x-should-retry`.
 */
function retryHeaders(retryAfterMs: number): readonly HeaderPair[] {
  const never = retryAfterMs === 0 || retryAfterMs > LONGEST_SDK_WAIT_MS;
  const seconds = retryAfterMs === 0 ? 0 : retryAfterSeconds(retryAfterMs);
  return [
    ["retry-after", String(seconds)],
    ...(never ? [["x-should-retry", "false"] as const] : []),
  ];
}

/** Returns whole seconds, rounded up, at least 1. */
export function retryAfterSeconds(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1000));
}

/** RefusedRequest is a request that was refused, as the audit chain records it. */
export interface RefusedRequest {
  readonly error: PublicError;
  readonly origin: RequestOrigin;
}

/** RequestOrigin says where a request comes from and what it is for, as far as that is known. */
export interface RequestOrigin {
  readonly policy: CallerPolicy | undefined;
  /** Address of the client, canonical. */
  readonly address: string;
  /** The model that was asked for, where that was read. */
  readonly model: string | undefined;
  /** Path without its query, which may contain a key. */
  readonly path: string;
}

/** Returns the audit record of a refusal. */
export function refusalEvent(type: string, { origin, error }: RefusedRequest): AuditEvent {
  const { access_key, source, workload } = callerFields(origin.policy);
  const fields = {
    access_key,
    asked: optionalClientText(origin.model),
    client_ip: origin.address,
    code: clientText(error.code),
    path: clientText(origin.path),
    source,
    status: error.status,
    workload,
  };
  return { type, fields };
}
