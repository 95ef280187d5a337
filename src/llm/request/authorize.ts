/** Decides whether a caller may use a model: the only creator of a {@link Permit}. */
import { type ErrorCode, publicError, type PublicError } from "../../access/errors.ts";
import type { CallerPolicy, ModelGrant, PolicySnapshot } from "../../policy/snapshot.ts";
import type { Permit } from "../call.ts";
import type { AttemptTarget } from "../attempts/retry-plan.ts";
import type { LlmRoute } from "./routes.ts";
import { serves } from "../attempts/upstreams.ts";

export type Authorization =
  | { readonly kind: "granted"; readonly grant: ModelGrant }
  | { readonly kind: "refused"; readonly error: PublicError };

/** Decides whether a caller may use a model, by the name that it gave. */
export function authorize(caller: CallerPolicy, model: string): Authorization {
  const resolution = caller.resolveModel(model);
  switch (resolution.kind) {
    case "granted":
      return { kind: "granted", grant: resolution.grant };
    case "ambiguous":
      return denied(
        "ambiguous_model",
        `The model ${quote(model)} is served by several providers: write one of ` +
          `${resolution.candidates.join(", ")}.`,
      );
    case "unknown":
      return denied(
        "model_not_found",
        `There is no model ${quote(model)} here. GET ${listPath(caller)} lists yours.`,
      );
    case "denied":
      return denied(
        "model_not_allowed",
        `The model ${quote(model)} is not allowed: ${resolution.reason}.`,
      );
  }
}

export interface PermitRequest {
  readonly caller: CallerPolicy;
  readonly grant: ModelGrant;
  readonly route: LlmRoute;
  readonly snapshot: PolicySnapshot;
}

/**
 * Returns the permit for one call: the requested provider, then its fallbacks that exist, allow the
 * model and have the endpoint. Returns undefined if the requested provider has no such endpoint.
 */
export function permitFor(request: PermitRequest): Permit | undefined {
  const { caller, grant, route, snapshot } = request;
  const first: AttemptTarget = { provider: grant.provider, model: grant.model };
  if (!serves(first, route)) return undefined;
  const targets: [AttemptTarget, ...AttemptTarget[]] = [first];
  for (const fallback of first.provider.fallbacks) {
    const provider = snapshot.providers.get(fallback.provider);
    if (provider === undefined) continue;
    const target: AttemptTarget = { provider, model: fallback.model ?? first.model };
    // External callers reach no provider without external access, and no model outside of their
    // key's restrictions.
    if (caller.kind === "key" && provider.external === undefined) continue;
    if (caller.kind === "key" && !caller.allowsModel(target.model)) continue;
    if (provider.allowsModel(target.model) && serves(target, route)) targets.push(target);
  }
  return { caller, grant, targets } as unknown as Permit;
}

function listPath(caller: CallerPolicy): string {
  return caller.kind === "agent" ? "/v1/models" : "/ext/v1/models";
}

/** Returns a client's text, short enough to be echoed to it. */
function quote(text: string): string {
  return JSON.stringify(text.length > 100 ? `${text.slice(0, 100)}…` : text);
}

function denied(code: ErrorCode, message: string): Authorization {
  return { kind: "refused", error: publicError(code, message, "model") };
}
