/** All resources at one time, by kind and by `<namespace>/<name>`. Immutable. */
import type { AccessKey } from "./access-key.ts";
import type { Agent } from "./agent.ts";
import { keyOf } from "./metadata.ts";
import type { ModelProvider } from "./model-provider.ts";
import type { Provider } from "./provider.ts";
import type { SecretResource } from "./secret.ts";

export type Resource = AccessKey | Agent | ModelProvider | Provider | SecretResource;
export type ResourceKind = Resource["kind"];

const KINDS = { AccessKey: 1, Agent: 1, ModelProvider: 1, Provider: 1, Secret: 1 } satisfies Record<
  ResourceKind,
  1
>;

export function isResourceKind(kind: string): kind is ResourceKind {
  return Object.hasOwn(KINDS, kind);
}

export interface ResourceSet {
  readonly accessKeys: ReadonlyMap<string, AccessKey>;
  readonly agents: ReadonlyMap<string, Agent>;
  readonly modelProviders: ReadonlyMap<string, ModelProvider>;
  readonly providers: ReadonlyMap<string, Provider>;
  readonly secrets: ReadonlyMap<string, SecretResource>;
}

export const EMPTY_RESOURCE_SET: ResourceSet = {
  accessKeys: new Map(),
  agents: new Map(),
  modelProviders: new Map(),
  providers: new Map(),
  secrets: new Map(),
};

/** Builds a set; of two resources with the same kind and key, the first is kept. */
export function buildResourceSet(resources: Iterable<Resource>): ResourceSet {
  const accessKeys = new Map<string, AccessKey>();
  const agents = new Map<string, Agent>();
  const modelProviders = new Map<string, ModelProvider>();
  const providers = new Map<string, Provider>();
  const secrets = new Map<string, SecretResource>();
  for (const resource of resources) {
    const key = keyOf(resource);
    switch (resource.kind) {
      case "AccessKey":
        if (!accessKeys.has(key)) accessKeys.set(key, resource);
        break;
      case "Agent":
        if (!agents.has(key)) agents.set(key, resource);
        break;
      case "ModelProvider":
        if (!modelProviders.has(key)) modelProviders.set(key, resource);
        break;
      case "Provider":
        if (!providers.has(key)) providers.set(key, resource);
        break;
      case "Secret":
        if (!secrets.has(key)) secrets.set(key, resource);
        break;
    }
  }
  return { accessKeys, agents, modelProviders, providers, secrets };
}

/** `<kind>/<namespace>/<name>`: unique across kinds. */
export function resourceId(resource: {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}): string {
  return `${resource.kind}/${resource.namespace}/${resource.name}`;
}
