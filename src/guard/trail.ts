/**
 * Audit records of the guard: what was flagged, with a copy of the text without secrets and
 * personal data, and what could not be judged.
 */
import { callerFields, callerName } from "../access/caller.ts";
import type { AuditEvent, AuditValue } from "../audit/event.ts";
import type { RefusalLog } from "../audit/refusals/refusals.ts";
import type { AuditSink } from "../audit/sink.ts";
import { clientText } from "../platform/client-text.ts";
import { redact } from "../platform/redaction/redact.ts";
import type { CallerPolicy, GuardPolicy } from "../policy/snapshot.ts";
import type { ClassifierFailure } from "./classifier-client.ts";
import type { GuardFinding } from "./finding.ts";
import type { Piece } from "./pieces.ts";

/** A guard blocked a request or an answer. */
export const VIOLATION_ENFORCE = "GUARD.VIOLATION_ENFORCE";

/** A guard flagged a request or an answer that was forwarded. */
export const VIOLATION_AUDIT = "GUARD.VIOLATION_AUDIT";

/** A request or an answer was forwarded although not all of it could be judged. */
export const UNAVAILABLE = "GUARD.UNAVAILABLE";

/** The call that a record is about. */
export interface GuardedCall {
  readonly caller: CallerPolicy;
  readonly callId: string;
  /** The client's address, canonical. */
  readonly address: string;
  /** The model as named by the caller. */
  readonly model: string;
}

export interface GuardTrailOptions {
  readonly sink: AuditSink;
  /** Summarises what a caller can cause without cost. */
  readonly refusals: RefusalLog;
}

export class GuardTrail {
  readonly #options: GuardTrailOptions | undefined;

  /** @param options undefined if nothing is recorded (`--no-audit`) */
  constructor(options: GuardTrailOptions | undefined) {
    this.#options = options;
  }

  /** Records that a call was blocked. Nobody waits for the record. */
  blocked(call: GuardedCall, finding: GuardFinding): void {
    this.#options?.refusals.record({
      caller: callerName(call.caller),
      code: "guard_violation",
      event: () => findingEvent(VIOLATION_ENFORCE, call, finding),
    });
  }

  /** Records a finding whose call goes on. The call's own record is written after this one. */
  forwarded(call: GuardedCall, finding: GuardFinding): void {
    this.#options?.sink.append(findingEvent(VIOLATION_AUDIT, call, finding));
  }

  /** Records that texts were not judged. A dead classifier fails for every call: summarised. */
  unavailable(
    call: GuardedCall,
    guard: GuardPolicy,
    unjudged: { readonly count: number; readonly failure: ClassifierFailure },
  ): void {
    this.#options?.refusals.record({
      caller: callerName(call.caller),
      code: "guard_unavailable",
      event: () => unavailableEvent(call, guard, unjudged),
    });
  }
}

/** Members are sorted by name: see audit/chain/record.ts. */
type Fields = Record<string, AuditValue>;

function findingEvent(type: string, call: GuardedCall, finding: GuardFinding): AuditEvent {
  const { access_key, source, workload } = callerFields(call.caller);
  const { guard, piece } = finding;
  const fields: Fields = {
    access_key,
    asked: clientText(call.model),
    binding: guard.binding,
    call: call.callId,
    classifier: guard.classifier.type,
    client_ip: call.address,
    flagged: finding.count,
    label: finding.label,
    // Names of members and of tools are the client's texts too.
    param: clientText(redact(finding.param)),
    payload:
      guard.maxPayloadChars === undefined ? undefined : payloadOf(piece, guard.maxPayloadChars),
    score: finding.score,
    source,
    tool: finding.tool === undefined ? undefined : clientText(redact(finding.tool)),
    where: finding.where,
    workload,
  };
  return { type, fields };
}

function unavailableEvent(
  call: GuardedCall,
  guard: GuardPolicy,
  { count, failure }: { readonly count: number; readonly failure: ClassifierFailure },
): AuditEvent {
  const { access_key, source, workload } = callerFields(call.caller);
  const fields: Fields = {
    access_key,
    asked: clientText(call.model),
    binding: guard.binding,
    call: call.callId,
    classifier: guard.classifier.type,
    client_ip: call.address,
    label: "unavailable",
    pieces: count,
    problem: guard.classifier.problem,
    reason: failure,
    source,
    workload,
  };
  return { type: UNAVAILABLE, fields };
}

/**
 * Characters around a flagged piece that are sanitised with it. A secret that the piece's edge cuts
 * would not be recognised by its rest.
 */
const CONTEXT_CHARS = 65_536;

/** Returns the flagged piece without secrets and personal data, cut to a length. */
export function payloadOf({ whole, start, text }: Piece, maxChars: number): string {
  const from = Math.max(0, start - CONTEXT_CHARS);
  const end = start + text.length;
  const clean = redact(whole.slice(from, end + CONTEXT_CHARS));
  // Where the piece is in the sanitised text: exact but for a secret across one of its edges.
  const first = start === 0 ? 0 : redact(whole.slice(from, start)).length;
  const last = end === whole.length ? clean.length : redact(whole.slice(from, end)).length;
  return last - first > maxChars
    ? `${clean.slice(first, first + maxChars)}\u2026`
    : clean.slice(first, last);
}
