/** The stage that refuses bodies which choose values that only the gateway may choose. */
import { countsCost } from "../../limits/subject.ts";
import type { ModelProviderPolicy } from "../../policy/snapshot.ts";
import { authorize as authorizeModel } from "../request/authorize.ts";
import { refuse, type Refusal } from "../../access/refusal.ts";
import { deliveryOf } from "../attempts/upstreams.ts";
import { type Restricted, restrictedFields } from "../request/restricted-fields.ts";
import type { Authorized } from "./authorize.ts";
import type { Outcome } from "./pipeline.ts";
import type { BodyArrival, ReadBody } from "./read.ts";

type State = BodyArrival & ReadBody & Authorized;

export function inspect(state: State): Outcome<object> {
  for (const restricted of restrictedFields(state.route, state.body)) {
    const refusal = judge(restricted, state);
    if (refusal !== undefined) return refusal;
  }
  return {};
}

function judge(restricted: Restricted, state: State): Refusal | undefined {
  // Every provider that may receive the body must allow its features.
  const providers = state.permit.targets.map(({ provider }) => provider);
  switch (restricted.kind) {
    case "models":
      return judgeModels(restricted, state);
    case "feature": {
      const { feature, field } = restricted;
      const denying = denyingProvider(providers, feature);
      if (denying === undefined) return undefined;
      return refuse(
        "field_not_allowed",
        `${field} is not allowed: it names a model, an address or a key, which the gateway ` +
          "chooses. " +
          `Remove it, or add ${feature} to spec.allowedFeatures of the ModelProvider ` +
          `${denying.name}.`,
        field,
      );
    }
    case "unmetered": {
      const { feature, field } = restricted;
      // No translation has what a vendor bills in addition to tokens: it is dropped, or refused.
      const receiving = providers.filter(
        (provider) => deliveryOf(provider, state.route)?.kind === "pass",
      );
      const denying = denyingProvider(receiving, feature);
      if (denying === undefined || !countsCost(state.subject)) return undefined;
      return refuse(
        "feature_not_allowed",
        `${field} is not allowed: its cost is unknown, and the caller has a budget. ` +
          `Remove it, or add ${feature} to spec.allowedFeatures of the ModelProvider ` +
          `${denying.name}.`,
        field,
      );
    }
  }
}

function denyingProvider(
  providers: readonly ModelProviderPolicy[],
  feature: Exclude<Restricted, { kind: "models" }>["feature"],
): ModelProviderPolicy | undefined {
  return providers.find(({ allowedFeatures }) => !allowedFeatures.has(feature));
}

/** Each of the models must be allowed for the caller at this provider. */
function judgeModels(
  { field, models }: Extract<Restricted, { kind: "models" }>,
  { caller, permit }: State,
): Refusal | undefined {
  const { provider } = permit.grant;
  const denied = models.find((model) => {
    const decision = authorizeModel(caller, `${provider.name}/${model}`);
    return decision.kind === "refused" || decision.grant.provider !== provider;
  });
  if (denied === undefined) return undefined;
  return refuse(
    "field_not_allowed",
    `${field} names a model that is not allowed here. List allowed models of this provider ` +
      "only, or remove it.",
    field,
  );
}
