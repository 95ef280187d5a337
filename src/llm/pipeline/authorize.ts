/** The stage that checks whether the caller may use the model, and permits the call. */
import { refuse, Refusal } from "../../access/refusal.ts";
import { authorize as authorizeModel, permitFor } from "../request/authorize.ts";
import type { Permit } from "../call.ts";
import type { RequestContext } from "./context.ts";
import type { Outcome } from "./pipeline.ts";
import type { BodyArrival, ReadBody } from "./read.ts";

export interface Authorized {
  readonly permit: Permit;
}

export function authorize(
  { caller, route, facts }: BodyArrival & ReadBody,
  { snapshot }: RequestContext,
): Outcome<Authorized> {
  const decision = authorizeModel(caller, facts.model);
  if (decision.kind === "refused") return new Refusal(decision.error);
  const { grant } = decision;
  const permit = permitFor({ caller, grant, route, snapshot });
  if (permit === undefined) {
    const { name, kind } = grant.provider;
    return refuse("not_implemented", `The provider ${name} (${kind}) has no endpoint for this.`);
  }
  return { permit };
}
