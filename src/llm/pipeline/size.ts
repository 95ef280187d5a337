/** The stage that estimates the size of the call, if a limit needs it. */
import { type CallSize, sizeOf } from "../request/call-size.ts";
import { Refusal } from "../../access/refusal.ts";
import { countsCost } from "../../limits/subject.ts";
import type { Outcome } from "./pipeline.ts";
import type { BodyArrival, ReadBody } from "./read.ts";

export interface Sized {
  /** undefined if no limit needs it. */
  readonly size: CallSize | undefined;
}

export function size({ route, subject, facts, body }: BodyArrival & ReadBody): Outcome<Sized> {
  if (!countsCost(subject)) return { size: undefined };
  const { maxTokensPerRequest } = subject;
  const sized = sizeOf({ route, facts, body, maxTokensPerRequest });
  return sized.kind === "too_large"
    ? new Refusal(sized.error, { retryAfterMs: 0 })
    : { size: sized };
}
