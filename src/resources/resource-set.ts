/** All resources at one time, by kind and by `<namespace>/<name>`. Immutable. */
import {
  type CollectionByKind,
  isOfKind,
  KINDS,
  type Resource,
  RESOURCE_KINDS,
  type ResourceByKind,
  type ResourceKind,
} from "./kinds.ts";
import { keyOf } from "./metadata.ts";

/** A map for each kind of the table, under the kind's `collection`. */
export type ResourceSet = {
  readonly [K in ResourceKind as CollectionByKind[K]]: ReadonlyMap<string, ResourceByKind[K]>;
};

/** Builds a set; of two resources with the same kind and key, the first is kept. */
export function buildResourceSet(resources: Iterable<Resource>): ResourceSet {
  const all = [...resources];
  const maps = RESOURCE_KINDS.map((kind) => [KINDS[kind].collection, mapOf(all, kind)] as const);
  // TypeScript cannot type an object whose keys come from a table; the table gives each member its
  // type.
  return Object.fromEntries(maps) as unknown as ResourceSet;
}

export const EMPTY_RESOURCE_SET: ResourceSet = buildResourceSet([]);

/** Returns the resource of a kind, namespace and name; undefined if the set has none. */
export function findResource(
  resources: ResourceSet,
  ref: { readonly kind: ResourceKind; readonly namespace: string; readonly name: string },
): Resource | undefined {
  return resources[KINDS[ref.kind].collection].get(keyOf(ref));
}

function mapOf<K extends ResourceKind>(
  resources: readonly Resource[],
  kind: K,
): ReadonlyMap<string, ResourceByKind[K]> {
  const map = new Map<string, ResourceByKind[K]>();
  for (const resource of resources) {
    if (!isOfKind(resource, kind)) continue;
    const key = keyOf(resource);
    if (!map.has(key)) map.set(key, resource);
  }
  return map;
}
