/** The stage that reserves tokens and money for the worst case. */
import type { Admission, Amounts } from "../../limits/contract.ts";
import { limitRefusal } from "../../access/limit-refusal.ts";
import { microUsdOf } from "../settlement/budget.ts";
import type { Refusal } from "../../access/refusal.ts";
import type { Authorized } from "./authorize.ts";
import type { RequestContext } from "./context.ts";
import type { Outcome } from "./pipeline.ts";
import type { BodyArrival, ReadBody } from "./read.ts";
import type { Sized } from "./size.ts";

export interface Reserved {
  /** undefined if no limit needs it. */
  readonly reserved: Amounts | undefined;
}

export function reserve(
  state: BodyArrival & ReadBody & Authorized & Sized,
  context: RequestContext,
): Outcome<Reserved> {
  const { size, entry, subject, permit, raw } = state;
  if (size === undefined || entry.lease === undefined) return { reserved: undefined };
  const { promptTokens, outputTokens } = size;
  const cost = microUsdOf(context.prices(), permit.grant.model, promptTokens, outputTokens);
  const amounts: Amounts = {
    tokens: promptTokens + outputTokens,
    microUsd: cost ?? 0,
    requests: 1,
  };
  context.expected.remember(subject, raw.length, { amounts, outputTokens });
  const admission = context.limits.reserve(entry.lease, subject.checks, amounts);
  const answer = (known: Admission): Reserved | Refusal =>
    known.kind === "admitted" ? { reserved: amounts } : limitRefusal(known, amounts);
  return admission instanceof Promise ? admission.then(answer) : answer(admission);
}
