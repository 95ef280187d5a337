/** The configuration of the sidecars of this machine's agents, in the control API. */
import type { AuditFolder } from "../audit/options.ts";
import { hostsOf } from "../binding/hosts.ts";
import type { SidecarConfig } from "../compile/bindings.ts";
import { plugins } from "../providers/registry.ts";
import type { BindingSpecs } from "../resources/binding-spec.ts";
import type { GatewayOptions } from "./options.ts";

/**
 * The form in which the control API passes it to `svc run`, over a socket that only this user can
 * open.
 */
export interface SidecarView {
  readonly specs: BindingSpecs;
  /** Environment of the sidecar service. */
  readonly secrets: Readonly<Record<string, string>>;
  readonly gateway: { readonly address: string; readonly port: number };
  /** The agent's token for the gateway. */
  readonly token: string;
  /** Intercepted hosts, exact and `*.` patterns. */
  readonly hosts: readonly string[];
  /** Folder of the gateway's own audit chain: the sidecar's chain is beside it. */
  readonly audit?: AuditFolder;
  /** Files and folders that contain secrets, and must be hidden from the agent. */
  readonly private: readonly string[];
}

export function viewSidecar(
  { specs, environment }: SidecarConfig,
  token: string,
  options: GatewayOptions,
): SidecarView {
  const { audit } = options;
  return {
    specs,
    secrets: Object.fromEntries([...environment].map(([name, secret]) => [name, secret.reveal()])),
    gateway: options.listen,
    token,
    ...(audit === undefined
      ? {}
      : {
          audit: auditFolder(audit),
        }),
    private: [options.resources ?? [], audit?.dir ?? []].flat(),
    hosts: specs.bindings.flatMap((binding) => {
      const plugin = plugins.get(binding.type);
      return plugin === undefined ? [] : hostsOf(binding, plugin);
    }),
  };
}

/** Settings that sidecars share with the gateway: everything except the writer's name. */
function auditFolder(audit: NonNullable<GatewayOptions["audit"]>): AuditFolder {
  const { dir, keyFile, onFailure, sync, space } = audit;
  return { dir, keyFile, onFailure, sync, space };
}
