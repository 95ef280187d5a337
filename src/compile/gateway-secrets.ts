/** The Secrets that the gateway needs: it reads no others. */
import type { ResourceSet } from "../resources/resource-set.ts";

/**
 * Returns the Secrets, as `<namespace>/<name>`, with the keys of models, the credentials of MCP
 * servers that access keys may use, and those of classifiers: never what only the sidecars need.
 */
export function secretsOfGateway({
  modelProviders,
  providers,
  guardBindings,
}: Pick<ResourceSet, "modelProviders" | "providers" | "guardBindings">): ReadonlySet<string> {
  const names = new Set<string>();
  for (const { namespace, spec } of modelProviders.values())
    if (spec.apiKeySecretRef !== undefined) names.add(`${namespace}/${spec.apiKeySecretRef.name}`);
  for (const { namespace, spec } of providers.values()) {
    // The schema allows it for MCP servers only.
    if (spec.externalAccess?.enabled === true && spec.auth !== undefined)
      names.add(`${namespace}/${spec.auth.secretRef}`);
  }
  for (const { namespace, spec } of guardBindings.values()) {
    const { auth } = spec.classifier;
    if (auth !== undefined) names.add(`${namespace}/${auth.secretRef}`);
  }
  return names;
}
