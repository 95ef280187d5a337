/**
 * The intended state of Envoy: resources by type and name, each with its own version. Immutable.
 */
import { createHash } from "node:crypto";
import type { JsonValue } from "@bufbuild/protobuf";
import type { Cluster, Listener, RouteConfiguration } from "../../gen/messages.ts";
import type { ProtoRegistry } from "../protobuf/registry.ts";

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

/** Versions that were computed before, since a status is read more often than it changes. */
const VERSIONS = new WeakMap<ReadonlyMap<string, VersionedResource>, string>();
const VERSION_LENGTH = 12;

/** Returns the version of a type's resources. Equal content has equal versions at all gateways. */
export function versionOf(resources: ReadonlyMap<string, VersionedResource>): string {
  let version = VERSIONS.get(resources);
  if (version === undefined) {
    const lines = [...resources.values()].map((one) => `${one.name}\0${one.version}\n`);
    const hash = createHash("sha256").update(lines.toSorted().join(""));
    version = hash.digest("hex").slice(0, VERSION_LENGTH);
    VERSIONS.set(resources, version);
  }
  return version;
}

/** The resources of a snapshot in protobuf's JSON form, by type; each has a unique `name`. */
export interface EnvoyResources {
  readonly cluster: readonly Cluster[];
  readonly listener: readonly Listener[];
  readonly route: readonly RouteConfiguration[];
}

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
      for (const fields of resources[type]) {
        const resource = this.#encodeOne(type, fields, used);
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
    fields: EnvoyResources[ResourceType][number],
    used: Map<string, VersionedResource>,
  ): VersionedResource {
    const text = JSON.stringify(fields);
    const key = `${type}\n${text}`;
    let resource = this.#cache.get(key);
    if (resource === undefined) {
      const { name } = fields;
      if (name === undefined) throw new Error(`a ${type} resource without a name`);
      // Parsed again, because fields that are undefined are not JSON.
      const bytes = this.#registry.encode(TypeUrl[type], JSON.parse(text) as JsonValue);
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
