/**
 * Objects in the control API, in the form of Kubernetes: the object in force, defaults included,
 * and its status. A Secret shows the names of its keys, never a value.
 */
import type { ObjectStatus, PublishedStatus } from "../policy/status.ts";
import {
  KINDS,
  type Resource,
  resourceId,
  type ResourceKind,
  viewContent,
} from "../resources/kinds.ts";
import { findResource, type ResourceSet } from "../resources/resource-set.ts";
import { keyOf } from "../resources/metadata.ts";
import type { GuardUsage, ObjectUsage } from "../resources/usage.ts";
import { type GuardCountsOf, guardUsage } from "./guard-counts.ts";

export interface ObjectView {
  readonly apiVersion: string;
  readonly kind: ResourceKind;
  readonly metadata: {
    readonly namespace: string;
    readonly name: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
    /** Changes with the object; a patch may require it. Not set for a Secret. */
    readonly resourceVersion?: string;
  };
  /** The spec in force; undefined if there is none. */
  readonly spec?: Readonly<Record<string, unknown>>;
  /**
   * For a Secret: the names of its values. Not a field of its manifest, so that the output cannot
   * be applied by mistake.
   */
  readonly keys?: readonly string[];
  /** For a ConfigMap: its values. */
  readonly data?: Readonly<Record<string, string>>;
  readonly status: {
    readonly ready: boolean;
    readonly reason: string;
    readonly message: string;
  } & Partial<ObjectUsage> &
    Partial<GuardUsage> &
    Partial<Pick<PublishedStatus, "observedGeneration" | "phase" | "url" | "conditions">>;
}

/** Returns the usage of objects, by {@link resourceId}; omits unknown objects. */
export type UsageOf = (
  objects: readonly ObjectStatus[],
) => Promise<ReadonlyMap<string, ObjectUsage>>;

export interface ObjectsOptions {
  readonly statuses: () => readonly PublishedStatus[];
  readonly resources: () => ResourceSet;
  readonly usage: UsageOf;
  readonly guardCounts: GuardCountsOf;
}

/** Returns the selected objects, in the order of their kinds and names. */
export async function viewObjects(
  options: ObjectsOptions,
  wanted: (status: ObjectStatus) => boolean,
): Promise<ObjectView[]> {
  const statuses = options.statuses().filter(wanted);
  const usage = await options.usage(statuses);
  const resources = options.resources();
  const counts = options.guardCounts();
  return statuses.map((status) => {
    const found = view(status, findResource(resources, status), usage.get(resourceId(status)));
    if (status.kind !== "GuardBinding") return found;
    return { ...found, status: { ...found.status, ...guardUsage([counts.get(keyOf(status))]) } };
  });
}

function view(
  status: PublishedStatus,
  resource: Resource | undefined,
  usage: ObjectUsage | undefined,
): ObjectView {
  const { kind, namespace, name } = status;
  return {
    apiVersion: KINDS[kind].apiVersion,
    kind,
    metadata: {
      namespace,
      name,
      ...(resource === undefined || isEmpty(resource.labels) ? {} : { labels: resource.labels }),
      ...(resource === undefined || isEmpty(resource.annotations)
        ? {}
        : { annotations: resource.annotations }),
      // The version is a hash of the content.
      ...(resource === undefined || KINDS[kind].confidential
        ? {}
        : { resourceVersion: resource.version }),
    },
    ...(resource === undefined ? {} : viewContent(kind, resource)),
    status: statusView({ ...status, ...(usage === undefined ? {} : { usage }) }),
  };
}

/** Returns the `status` of an object, with usage in the fields that the interface names. */
function statusView({
  kind: _kind,
  namespace: _namespace,
  name: _name,
  conditions,
  usage,
  ...status
}: PublishedStatus): ObjectView["status"] {
  return { ...status, ...usage, conditions };
}

function isEmpty(record: Readonly<Record<string, string>>): boolean {
  return Object.keys(record).length === 0;
}
