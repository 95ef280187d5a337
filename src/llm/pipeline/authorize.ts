/**
 * The stage that checks whether the caller may use the model, and selects the providers that may
 * serve it.
 */
import type { CallerPolicy, PolicySnapshot } from "../../policy/snapshot.ts";
import { authorize as authorizeModel } from "../authorize.ts";
import type { Permit } from "../call.ts";
import { serves } from "../prepare.ts";
import type { AttemptTarget } from "../retry-plan.ts";
import { refuse, Refusal } from "../../access/refusal.ts";
import type { LlmRoute } from "../routes.ts";
import type { RequestContext } from "./context.ts";
import type { Outcome } from "./pipeline.ts";
import type { BodyArrival, ReadBody } from "./read.ts";

export interface Authorized {
  readonly permit: Permit;
  /** The requested provider, then its fallbacks; at least one. */
  readonly targets: readonly AttemptTarget[];
}

export function authorize(
  { caller, route, facts }: BodyArrival & ReadBody,
  { snapshot }: RequestContext,
): Outcome<Authorized> {
  const decision = authorizeModel(caller, facts.model);
  if (decision.kind === "refused") return new Refusal(decision.error);
  const { permit } = decision;
  const first: AttemptTarget = { provider: permit.grant.provider, model: permit.grant.model };
  if (!serves(first, route, facts.stream)) {
    const { name, kind } = first.provider;
    return refuse("not_implemented", `The provider ${name} (${kind}) has no endpoint for this.`);
  }
  return { permit, targets: targetsOf(first, { caller, route, stream: facts.stream, snapshot }) };
}

interface Asked {
  readonly caller: CallerPolicy;
  readonly route: LlmRoute;
  readonly stream: boolean;
  readonly snapshot: PolicySnapshot;
}

/**
 * Returns the requested provider, then its fallbacks that exist, allow the model and have the
 * endpoint.
 */
function targetsOf(
  first: AttemptTarget,
  { caller, route, stream, snapshot }: Asked,
): AttemptTarget[] {
  const found = [first];
  for (const fallback of first.provider.fallbacks) {
    const provider = snapshot.providers.get(fallback.provider);
    if (provider === undefined) continue;
    // A provider without external access is skipped as a fallback for external callers.
    if (caller.kind === "key" && provider.external === undefined) continue;
    const target: AttemptTarget = { provider, model: fallback.model ?? first.model };
    if (provider.allowsModel(target.model) && serves(target, route, stream)) found.push(target);
  }
  return found;
}
