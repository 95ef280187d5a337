/**
 * The table of all kinds. To add one, declare it in a file of this folder with `defineKind`, and
 * add its line here.
 */
import { accessKeyKind } from "./access-key.ts";
import { agentKind } from "./agent.ts";
import { configMapKind } from "./config-map.ts";
import { guardBindingKind } from "./guard-binding.ts";
import type { ContentView, Kind } from "./kind.ts";
import { modelProviderKind } from "./model-provider.ts";
import { providerKind } from "./provider.ts";
import { sessionKind } from "./session.ts";
import { secretKind } from "./secret.ts";
import type { UsageCounter } from "./usage.ts";

/** In the order of help and of the field reference. */
const TABLE = {
  Agent: agentKind,
  ModelProvider: modelProviderKind,
  AccessKey: accessKeyKind,
  Provider: providerKind,
  GuardBinding: guardBindingKind,
  Session: sessionKind,
  Secret: secretKind,
  ConfigMap: configMapKind,
} as const;

type Table = typeof TABLE;

export type ResourceKind = keyof Table;

/** The type of the parsed objects of each kind. */
export type ResourceByKind = {
  readonly [K in ResourceKind]: Table[K] extends Kind<infer Own> ? Own : never;
};

export type Resource = ResourceByKind[ResourceKind];

/** The key of each kind's map in the resource set. */
export type CollectionByKind = { readonly [K in ResourceKind]: Table[K]["collection"] };

export const KINDS: {
  readonly [K in ResourceKind]: Kind<ResourceByKind[K], CollectionByKind[K]>;
} = TABLE;

/** Names of all kinds, in the order of the table. */
export const RESOURCE_KINDS = Object.keys(KINDS) as readonly ResourceKind[];

export function isResourceKind(kind: string): kind is ResourceKind {
  return Object.hasOwn(KINDS, kind);
}

/** Returns whether a resource is of a kind. */
export function isOfKind<K extends ResourceKind>(
  resource: Resource,
  kind: K,
): resource is ResourceByKind[K] {
  return resource.kind === kind;
}

/** `<kind>/<namespace>/<name>`: unique across kinds. */
export function resourceId(resource: {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}): string {
  return `${resource.kind}/${resource.namespace}/${resource.name}`;
}

/** Returns the content of a resource that the control API shows. */
export function viewContent<K extends ResourceKind>(
  kind: K,
  resource: ResourceByKind[K],
): ContentView {
  return KINDS[kind].view(resource);
}

/**
 * Returns the counter of an object's usage; undefined if it has none.
 * @param resource the object in use; undefined if no version of it is
 */
export function usageCounterOf<K extends ResourceKind>(
  kind: K,
  resource: ResourceByKind[K] | undefined,
): UsageCounter | undefined {
  return KINDS[kind].usage?.counter(resource);
}
