/**
 * The intended state of Envoy: resources by type and name, each with its own version. Immutable.
 */
import { createHash } from "node:crypto";
import type { ProtoRegistry, ResourceJson } from "../protobuf/registry.ts";

export const TypeUrl = {
  cluster: "type.googleapis.com/envoy.config.cluster.v3.Cluster",
  listener: "type.googleapis.com/envoy.config.listener.v3.Listener",
  route: "type.googleapis.com/envoy.config.route.v3.RouteConfiguration",
} as const;

export type ResourceType = keyof typeof TypeUrl;

/** Make before break: referenced resources are sent first. Removals use the reverse order. */
export const PUSH_ORDER: readonly ResourceType[] = ["cluster", "listener", "route"];

export interface VersionedResource {
  readonly name: string;
  /** Hash of its content. */
  readonly version: string;
  readonly bytes: Uint8Array;
}

export type XdsSnapshot = Readonly<Record<ResourceType, ReadonlyMap<string, VersionedResource>>>;

export const EMPTY_XDS_SNAPSHOT: XdsSnapshot = {
  cluster: new Map(),
  listener: new Map(),
  route: new Map(),
};

/** The resources of a snapshot in JSON, by type; each has a unique `name`. */
export type EnvoyResources = Readonly<Record<ResourceType, readonly ResourceJson[]>>;

/** Encodes resources; unchanged ones are not encoded again. */
export class SnapshotEncoder {
  readonly #registry: ProtoRegistry;
  #cache = new Map<string, VersionedResource>();

  constructor(registry: ProtoRegistry) {
    this.#registry = registry;
  }

  /** @throws Error when a resource does not fit its message: a defect of the compiler. */
  encode(resources: EnvoyResources): XdsSnapshot {
    const used = new Map<string, VersionedResource>();
    const of = (type: ResourceType): ReadonlyMap<string, VersionedResource> => {
      const byName = new Map<string, VersionedResource>();
      for (const json of resources[type]) {
        const resource = this.#encodeOne(type, json, used);
        if (byName.has(resource.name))
          throw new Error(`two ${type} resources named ${resource.name}`);
        byName.set(resource.name, resource);
      }
      return byName;
    };
    const snapshot = { cluster: of("cluster"), listener: of("listener"), route: of("route") };
    this.#cache = used;
    return snapshot;
  }

  #encodeOne(
    type: ResourceType,
    json: ResourceJson,
    used: Map<string, VersionedResource>,
  ): VersionedResource {
    const key = `${type}\n${JSON.stringify(json)}`;
    let resource = this.#cache.get(key);
    if (resource === undefined) {
      const name = json["name"];
      if (typeof name !== "string") throw new Error(`a ${type} resource without a name`);
      const bytes = this.#registry.encode(TypeUrl[type], json);
      resource = {
        name,
        version: createHash("sha256").update(bytes).digest("hex").slice(0, 16),
        bytes,
      };
    }
    used.set(key, resource);
    return resource;
  }
}
