/** Objects of the Kubernetes API in the form that `svc get` and `svc status` show. */
import { CORE, type KubeKind, type KubeObject } from "../../kubernetes/objects.ts";
import { KINDS, type ResourceKind } from "../../resources/kinds.ts";
import { kubeKindOf } from "../../sources/kubernetes/own-informers.ts";
import type { ObjectView } from "../backend.ts";
import type { ObjectState } from "../status.ts";

/** Status of an object whose newest version has none yet. */
const PENDING = { ready: false, reason: "Pending" } as const;

/** Kinds of ours whose status somebody writes. */
export const JUDGED_KINDS = [
  "Agent",
  "ModelProvider",
  "AccessKey",
  "Provider",
  "GuardBinding",
] as const satisfies readonly ResourceKind[];

/** Returns the address of a kind, ours or Kubernetes' own. */
export function addressOf(kind: ResourceKind): KubeKind {
  if (kind === "Secret") return CORE.secret;
  if (kind === "ConfigMap") return CORE.configMap;
  return kubeKindOf(kind);
}

/** Contains no value of a Secret. */
export function viewOf(kind: ResourceKind, object: KubeObject): ObjectView {
  const { namespace = "", name, labels, annotations, resourceVersion } = object.metadata;
  const { confidential } = KINDS[kind];
  return {
    apiVersion: object.apiVersion,
    kind,
    metadata: {
      namespace,
      name,
      ...(labels === undefined ? {} : { labels }),
      // The annotation of kubectl apply holds the whole object: of a Secret, also its values.
      ...(annotations === undefined ? {} : withoutLastApplied(annotations)),
      ...(resourceVersion === undefined || confidential ? {} : { resourceVersion }),
    },
    ...contentOf(kind, object),
    status: statusOf(kind, object),
  };
}

function withoutLastApplied(annotations: Readonly<Record<string, string>>) {
  const { "kubectl.kubernetes.io/last-applied-configuration": _applied, ...rest } = annotations;
  return Object.keys(rest).length === 0 ? {} : { annotations: rest };
}

function contentOf(kind: ResourceKind, object: KubeObject): Partial<ObjectView> {
  const data = (object["data"] ?? {}) as Readonly<Record<string, string>>;
  switch (kind) {
    case "Secret":
      return { keys: Object.keys(data) };
    case "ConfigMap":
      return { data };
    default:
      return { spec: (object["spec"] ?? {}) as Readonly<Record<string, unknown>> };
  }
}

function statusOf(kind: ResourceKind, object: KubeObject): ObjectView["status"] {
  if (KINDS[kind].crd === undefined) return { ready: true, reason: "Ready", message: "" };
  const status = object["status"] as Partial<ObjectView["status"]> | undefined;
  const { generation } = object.metadata;
  if (status?.reason === undefined)
    return { ...status, ...PENDING, message: "nothing has judged it yet: see svc status" };
  const known = { ready: false, message: "", ...status, reason: status.reason };
  return isCurrent(status, generation)
    ? known
    : { ...known, ...PENDING, message: "its newest version is not judged yet" };
}

function isCurrent(
  { observedGeneration }: Partial<ObjectView["status"]>,
  generation: number | undefined,
): boolean {
  return (
    generation === undefined || observedGeneration === undefined || observedGeneration >= generation
  );
}

export function stateOf(kind: ResourceKind, object: KubeObject): ObjectState {
  const { metadata, status } = viewOf(kind, object);
  const { namespace, name } = metadata;
  return { kind, namespace, name, ...status };
}
