/**
 * What commands work on: the `svc up` of this machine, over its socket; or, later, a cluster.
 * Commands know nothing else of where objects are. What cannot be done throws a CliError that says
 * why.
 */
import type { ApplyResult } from "../gateway/control.ts";
import type { ObjectView } from "../gateway/objects.ts";
import type { GatewayStatus } from "../gateway/status.ts";
import type { ResourceKind } from "../resources/resource-set.ts";

export type { ApplyResult, ObjectView };

export interface ManifestText {
  /** Names the text in errors: a file, or what made it. */
  readonly source: string;
  /** YAML or JSON, of one or several documents. */
  readonly text: string;
}

export interface Backend {
  /**
   * Puts all objects in force, or none; resolves once they are.
   * @param options.create refuse objects that exist
   */
  apply(
    manifests: readonly ManifestText[],
    options?: { readonly create?: boolean },
  ): Promise<readonly ApplyResult[]>;
  /** In the order of namespaces and names. @param namespace undefined for all */
  list(kind: ResourceKind, namespace: string | undefined): Promise<readonly ObjectView[]>;
  /** undefined where there is none. */
  get(kind: ResourceKind, namespace: string, name: string): Promise<ObjectView | undefined>;
  /** @param patch JSON merge patch (RFC 7396); a `metadata.resourceVersion` in it is demanded */
  patch(
    kind: ResourceKind,
    namespace: string,
    name: string,
    patch: Readonly<Record<string, unknown>>,
  ): Promise<ApplyResult>;
  /** @returns false where there is none */
  delete(kind: ResourceKind, namespace: string, name: string): Promise<boolean>;
  /** Prometheus' text. */
  metrics(): Promise<string>;
  /** An Agent's workload token. */
  token(namespace: string, agent: string): Promise<string>;
  status(): Promise<GatewayStatus>;
}

/** Which backend: what flags and environment say. */
export interface Target {
  readonly stateDir?: string | undefined;
}
