/**
 * The backend of commands: the `svc up` of this machine, over its socket, or a cluster, over the
 * Kubernetes API. A failed operation throws a CliError with the reason.
 */
import type { ApplyResult } from "../gateway/control.ts";
import type { ToolsView } from "../gateway/mcp-tools.ts";
import type { ObjectView } from "../gateway/objects.ts";
import type { ResourceKind } from "../resources/kinds.ts";
import type { ProxyReport } from "./proxies.ts";
import type { StatusReport } from "./status.ts";

export type { ApplyResult, ObjectView, ToolsView };

export interface ManifestText {
  /** Name of the text in errors: a file, or the command that created it. */
  readonly source: string;
  /** YAML or JSON, with one or several documents. */
  readonly text: string;
}

export interface Backend {
  /**
   * Applies all objects, or none; resolves when they are in force.
   * @param options.create refuse objects that exist
   */
  apply(
    manifests: readonly ManifestText[],
    options?: { readonly create?: boolean },
  ): Promise<readonly ApplyResult[]>;
  /** Returns objects in the order of namespaces and names. @param namespace undefined for all */
  list(kind: ResourceKind, namespace: string | undefined): Promise<readonly ObjectView[]>;
  /** Returns undefined if there is no such object. */
  get(kind: ResourceKind, namespace: string, name: string): Promise<ObjectView | undefined>;
  /** @param patch JSON merge patch (RFC 7396); a `metadata.resourceVersion` in it is required */
  patch(
    kind: ResourceKind,
    namespace: string,
    name: string,
    patch: Readonly<Record<string, unknown>>,
  ): Promise<ApplyResult>;
  /** @returns false if there is no such object */
  delete(kind: ResourceKind, namespace: string, name: string): Promise<boolean>;
  /** Asks an MCP server for its tools. @param provider name of the Provider */
  tools(namespace: string, provider: string): Promise<ToolsView>;
  /** Prometheus' text. */
  metrics(): Promise<string>;
  /** An Agent's workload token. */
  token(namespace: string, agent: string): Promise<string>;
  status(): Promise<StatusReport>;
  /** The Envoys: gateways with their configuration, and the sidecars of agents. */
  proxies(): Promise<ProxyReport>;
}

/** Selects the backend, from flags and environment. */
export interface BackendTarget {
  /** Folder of the state of a `svc up`. */
  readonly stateDir?: string | undefined;
  /** Context of the kubeconfig. */
  readonly context?: string | undefined;
  /** File of the kubeconfig. */
  readonly kubeconfig?: string | undefined;
  /** Namespace of the installation in the cluster. */
  readonly systemNamespace?: string | undefined;
}
