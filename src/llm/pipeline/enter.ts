/**
 * The third stage: limits that do not need the body. Requests per minute, requests in flight,
 * requests per day and the bytes in flight are checked before any byte of the body is held; an
 * exhausted budget also refuses here.
 */
import type { Admission, Amounts } from "../../limits/contract.ts";
import { MAX_REQUEST_BODY_BYTES } from "../surface.ts";
import { type LimitSubject, subjectOf } from "../../limits/subject.ts";
import { limitRefusal } from "../../access/limit-refusal.ts";
import { Entry } from "../request/entry.ts";
import { callerName } from "../../access/caller.ts";
import { refuse, Refusal } from "../../access/refusal.ts";
import type { RequestContext } from "./context.ts";
import type { Arrival, Identified } from "./identify.ts";
import type { Outcome } from "./pipeline.ts";

export interface Entered {
  readonly subject: LimitSubject;
  readonly entry: Entry;
}

/** Reserved for every request; the demand of its body is reserved once it is known. */
const ONE_REQUEST: Amounts = { tokens: 0, microUsd: 0, requests: 1 };

/** Delay before the next try if it is unknown when there will be room. */
const RETRY_MS = 1_000;

export function enter(
  { headers, caller }: Arrival & Identified,
  context: RequestContext,
): Outcome<Entered> {
  if (context.auditRefuses()) {
    return refuse("audit_unavailable", "The audit log cannot be written. Try again.");
  }
  const declared = declaredBytes(headers.get("content-length"));
  if (declared > MAX_REQUEST_BODY_BYTES) {
    return refuse("body_too_large", `The request body is above ${MAX_REQUEST_BODY_BYTES} bytes.`);
  }
  const subject = subjectOf(caller, context.snapshot);
  const admitted = context.bytes.admit(callerName(caller), declared);
  if (admitted.kind === "refused") return bytesRefusal(admitted.limit);
  const bytes = admitted.lease;
  if (subject.checks.length === 0) {
    return { subject, entry: new Entry(bytes, undefined, context.limits) };
  }
  const { scope, accounts, checks } = subject;
  const expect = context.expected.of(subject, declared);
  const admission = context.limits.admit({
    id: context.callId,
    scope,
    accounts,
    checks,
    reserve: ONE_REQUEST,
    ...(expect === undefined ? {} : { expect }),
  });
  const answer = (known: Admission): Entered | Refusal => {
    if (known.kind === "admitted") {
      return { subject, entry: new Entry(bytes, known.lease, context.limits) };
    }
    bytes.release();
    return limitRefusal(known, undefined);
  };
  return admission instanceof Promise ? admission.then(answer) : answer(admission);
}

/**
 * Returns the announced size of a request. A request without one counts as the largest until its
 * body has arrived.
 */
function declaredBytes(contentLength: string | undefined): number {
  // Envoy has validated that it is a number (RFC 9110 section 8.6).
  const length = Number(contentLength ?? Number.NaN);
  return Number.isNaN(length) ? MAX_REQUEST_BODY_BYTES : length;
}

function bytesRefusal(limit: "caller" | "total"): Refusal {
  const { error } =
    limit === "caller"
      ? refuse(
          "bytes_in_flight_exceeded",
          "Your requests that are being uploaded or retried are too large together. Try " +
            "again when one has ended.",
        )
      : refuse("overloaded", "The gateway holds as many request bodies as it can. Try again.");
  return new Refusal(error, { retryAfterMs: RETRY_MS });
}
