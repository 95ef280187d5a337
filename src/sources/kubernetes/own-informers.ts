/** Informers of our own kinds, in all namespaces or in some. */
import { Informer, type InformerOptions } from "../../kubernetes/informer.ts";
import type { KubeKind } from "../../kubernetes/objects.ts";
import { crdPlural } from "../../resources/crd.ts";
import { KINDS, type ResourceKind } from "../../resources/kinds.ts";

export interface OwnInformersOptions extends Pick<InformerOptions, "client" | "clock" | "log"> {
  /** Empty for all. */
  readonly namespaces: readonly string[];
}

/** Returns the address of one of our kinds. */
export function kubeKindOf(kind: ResourceKind): KubeKind {
  const { apiVersion, names } = KINDS[kind];
  return { apiVersion, kind, plural: crdPlural(names) };
}

/** They are not started yet. */
export function ownInformers(
  kinds: readonly ResourceKind[],
  { namespaces, ...options }: OwnInformersOptions,
): readonly Informer[] {
  const scopes = namespaces.length === 0 ? [undefined] : namespaces;
  return kinds.flatMap((kind) =>
    scopes.map((namespace) => new Informer({ ...options, kind: kubeKindOf(kind), namespace })),
  );
}
