/** Compiles the ConfigMap `svc-model-prices` into price overrides. Pure. */
import type { Verdict } from "../policy/status.ts";
import { keyOf } from "../resources/metadata.ts";
import type { ModelPrices } from "../resources/model-prices.ts";
import type { ResourceSet } from "../resources/resource-set.ts";
import { type Env, isEnvSet } from "./policy-secrets.ts";

export interface CompiledPrices {
  readonly prices: ModelPrices;
  readonly verdicts: readonly Verdict[];
}

/** Compiles the price overrides. If several namespaces have some, those of the first are used. */
export function compilePrices({ configMaps }: ResourceSet, env: Env): CompiledPrices {
  let inUse: string | undefined;
  let prices: ModelPrices = {};
  const verdicts: Verdict[] = [];
  const sorted = [...configMaps.values()].toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
  for (const configMap of sorted) {
    const { kind, namespace, name, whenEnv } = configMap;
    const report = (ready: boolean, reason: Verdict["reason"], message: string): void =>
      void verdicts.push({ kind, namespace, name, ready, reason, message });
    if (whenEnv !== undefined && !isEnvSet(env, whenEnv))
      report(false, "Skipped", `environment variable ${whenEnv} is not set`);
    else if (inUse !== undefined)
      report(false, "DuplicatePrices", `ConfigMap ${inUse} is in use instead`);
    else {
      inUse = keyOf(configMap);
      ({ prices } = configMap);
      report(true, "Ready", "");
    }
  }
  return { prices, verdicts };
}
