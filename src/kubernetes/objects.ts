/**
 * Objects of the Kubernetes API, as far as this service looks into them, and their addresses.
 * Conventions: https://kubernetes.io/docs/reference/using-api/api-concepts/
 */

/** https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/object-meta/ */
export interface ObjectMeta {
  readonly name: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly generation?: number;
  readonly creationTimestamp?: string | null;
  readonly deletionTimestamp?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly finalizers?: readonly string[];
  readonly ownerReferences?: readonly OwnerReference[];
  readonly managedFields?: readonly unknown[];
}

export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
  readonly blockOwnerDeletion?: boolean;
}

/** An object of any kind. */
export interface KubeObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ObjectMeta;
  readonly [field: string]: unknown;
}

/** A kind of the API, and the name under which its objects are addressed. */
export interface KubeKind {
  readonly apiVersion: string;
  readonly kind: string;
  /** Name in addresses, e.g. `networkpolicies`. */
  readonly plural: string;
}

export const CORE = {
  configMap: { apiVersion: "v1", kind: "ConfigMap", plural: "configmaps" },
  event: { apiVersion: "v1", kind: "Event", plural: "events" },
  namespace: { apiVersion: "v1", kind: "Namespace", plural: "namespaces" },
  pod: { apiVersion: "v1", kind: "Pod", plural: "pods" },
  persistentVolumeClaim: {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    plural: "persistentvolumeclaims",
  },
  secret: { apiVersion: "v1", kind: "Secret", plural: "secrets" },
  deployment: { apiVersion: "apps/v1", kind: "Deployment", plural: "deployments" },
  job: { apiVersion: "batch/v1", kind: "Job", plural: "jobs" },
  lease: { apiVersion: "coordination.k8s.io/v1", kind: "Lease", plural: "leases" },
  networkPolicy: {
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    plural: "networkpolicies",
  },
  role: { apiVersion: "rbac.authorization.k8s.io/v1", kind: "Role", plural: "roles" },
  roleBinding: {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "RoleBinding",
    plural: "rolebindings",
  },
} as const satisfies Record<string, KubeKind>;

/** Path of a collection, in one namespace or in all. */
export function collectionPath({ apiVersion, plural }: KubeKind, namespace?: string): string {
  const root = apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  return namespace === undefined
    ? `${root}/${plural}`
    : `${root}/namespaces/${encodeURIComponent(namespace)}/${plural}`;
}

/** Path of one object. */
export function objectPath(
  kind: KubeKind,
  { namespace, name }: { readonly namespace: string; readonly name: string },
): string {
  return `${collectionPath(kind, namespace)}/${encodeURIComponent(name)}`;
}

/** `<namespace>/<name>` of an object. */
export function nameOf({ metadata }: { readonly metadata: ObjectMeta }): string {
  return `${metadata.namespace ?? ""}/${metadata.name}`;
}
