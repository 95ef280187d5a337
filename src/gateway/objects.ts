/**
 * Objects in the control API, in the form of Kubernetes: the object in force, defaults included,
 * and its status. A Secret shows the names of its keys, never a value.
 */
import type { ObjectStatus } from "../policy/status.ts";
import { API_VERSION } from "../resources/metadata.ts";
import type { Resource, ResourceKind, ResourceSet } from "../resources/resource-set.ts";
import { resourceId } from "../resources/resource-set.ts";

/** Today's usage (UTC). */
export interface ObjectUsage {
  readonly tokensToday: number;
  readonly requestsToday: number;
  /** US dollars, for models with a price. */
  readonly costTodayUSD?: number | undefined;
  /** Requests to models without a price. */
  readonly unpricedToday?: number | undefined;
  readonly inFlight?: number | undefined;
}

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
  readonly status: {
    readonly ready: boolean;
    readonly reason: string;
    readonly message: string;
  } & Partial<ObjectUsage>;
}

/** Returns the usage of objects, by {@link resourceId}; omits unknown objects. */
export type UsageOf = (
  objects: readonly ObjectStatus[],
) => Promise<ReadonlyMap<string, ObjectUsage>>;

export interface ObjectsOptions {
  readonly statuses: () => readonly ObjectStatus[];
  readonly resources: () => ResourceSet;
  readonly usage: UsageOf;
}

/** Returns the selected objects, in the order of their kinds and names. */
export async function viewObjects(
  options: ObjectsOptions,
  wanted: (status: ObjectStatus) => boolean,
): Promise<ObjectView[]> {
  const statuses = options.statuses().filter(wanted);
  const usage = await options.usage(statuses);
  const resources = options.resources();
  return statuses.map((status) =>
    view(status, resourceOf(resources, status), usage.get(resourceId(status))),
  );
}

function resourceOf(
  resources: ResourceSet,
  {
    kind,
    namespace,
    name,
  }: { readonly kind: ResourceKind; readonly namespace: string; readonly name: string },
): Resource | undefined {
  const key = `${namespace}/${name}`;
  switch (kind) {
    case "AccessKey":
      return resources.accessKeys.get(key);
    case "Agent":
      return resources.agents.get(key);
    case "ModelProvider":
      return resources.modelProviders.get(key);
    case "Provider":
      return resources.providers.get(key);
    case "Secret":
      return resources.secrets.get(key);
  }
}

function view(
  status: ObjectStatus,
  resource: Resource | undefined,
  usage: ObjectUsage | undefined,
): ObjectView {
  const { kind, namespace, name, ready, reason, message } = status;
  return {
    apiVersion: kind === "Secret" ? "v1" : API_VERSION,
    kind,
    metadata: {
      namespace,
      name,
      ...(resource === undefined || isEmpty(resource.labels) ? {} : { labels: resource.labels }),
      ...(resource === undefined || isEmpty(resource.annotations)
        ? {}
        : { annotations: resource.annotations }),
      // The version of a Secret is a hash of its content.
      ...(resource === undefined || resource.kind === "Secret"
        ? {}
        : { resourceVersion: resource.version }),
    },
    ...(resource === undefined
      ? {}
      : resource.kind === "Secret"
        ? { keys: [...resource.values.keys()] }
        : { spec: resource.spec }),
    status: { ready, reason, message, ...usage },
  };
}

function isEmpty(record: Readonly<Record<string, string>>): boolean {
  return Object.keys(record).length === 0;
}
