/**
 * The stage that lets the guards of the caller scan the request. A caller without guards does not
 * wait.
 */
import type { GuardFinding } from "../../guard/finding.ts";
import { detailOf } from "../../guard/finding.ts";
import { publicError } from "../../access/errors.ts";
import { Refusal } from "../../access/refusal.ts";
import { dialects } from "../dialects/registry.ts";
import { isEmbedding } from "../request/routes.ts";
import type { Authorized } from "./authorize.ts";
import type { RequestContext } from "./context.ts";
import type { Outcome } from "./pipeline.ts";
import type { BodyArrival, ReadBody } from "./read.ts";

export function guard(
  state: BodyArrival & ReadBody & Authorized,
  { guards, callId }: RequestContext,
): Outcome<object> {
  const { address, body, facts, permit, route } = state;
  const { caller } = permit;
  // No model follows instructions in a text that it only embeds.
  if (caller.guards.length === 0 || isEmbedding(route.operation)) return {};
  const texts = dialects[route.dialect].readTexts(body.value);
  // The verdict may take seconds, and the value takes several times the bytes of the body.
  body.forgetValue();
  const call = { caller, callId, address, model: facts.model };
  return guards
    .scan({ call, texts, canBlock: true })
    .then((finding) => (finding === undefined ? {} : violation(finding)));
}

/** Returns the refusal of a call with a finding. */
export function violation(finding: GuardFinding): Refusal {
  const detail = detailOf(finding);
  return new Refusal(publicError("guard_violation", detail.message), { detail });
}
