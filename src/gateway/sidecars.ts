/** What the sidecars of this machine's agents are given, and what the Providers' statuses say. */
import type { AuditFolder } from "../audit/options.ts";
import { hostsOf } from "../binding/hosts.ts";
import { type CompiledBindings, compileBindings, type SidecarConfig } from "../compile/bindings.ts";
import type { Env } from "../compile/policy-secrets.ts";
import { type ObjectStatus, sortStatuses } from "../policy/status.ts";
import { plugins } from "../providers/registry.ts";
import type { BindingSpecs } from "../resources/binding-spec.ts";
import { keyOf } from "../resources/metadata.ts";
import type { ResourceSet } from "../resources/resource-set.ts";
import type { GatewayOptions } from "./options.ts";

/** As the control API hands it to `svc run`: over a socket that only this user can open. */
export interface SidecarView {
  readonly specs: BindingSpecs;
  /** Environment of the sidecar service. */
  readonly secrets: Readonly<Record<string, string>>;
  readonly gateway: { readonly address: string; readonly port: number };
  /** Of the agent, for the gateway. */
  readonly token: string;
  /** That are intercepted, exact and `*.` patterns. */
  readonly hosts: readonly string[];
  /** Where the gateway's own audit chain is: the sidecar's is beside it. */
  readonly audit?: AuditFolder;
  /** Files and folders that hold secrets: nothing for the agent to see. */
  readonly private: readonly string[];
}

export function compileSidecars(resources: ResourceSet, env: Env): CompiledBindings {
  return compileBindings(resources, { env, service: (type) => plugins.get(type) });
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
    private: [options.resources, ...(audit === undefined ? [] : [audit.dir])],
    hosts: specs.bindings.flatMap((binding) => {
      const plugin = plugins.get(binding.type);
      return plugin === undefined ? [] : hostsOf(binding, plugin);
    }),
  };
}

/** What sidecars share with the gateway: everything but the writer's name. */
function auditFolder(audit: NonNullable<GatewayOptions["audit"]>): AuditFolder {
  const { dir, keyFile, onFailure, sync, space } = audit;
  return { dir, keyFile, onFailure, sync, space };
}

/** An Agent that lacks some of its Providers is in use, and says so. */
export function withBindingStatuses(
  statuses: readonly ObjectStatus[],
  { statuses: providers, missing }: CompiledBindings,
): ObjectStatus[] {
  const judged = statuses.map((status): ObjectStatus => {
    const absent = status.kind === "Agent" ? missing.get(keyOf(status)) : undefined;
    if (absent === undefined) return status;
    const message = [status.message, ...absent].filter((part) => part !== "").join("; ");
    return {
      ...status,
      reason: status.reason === "Ready" ? "DegradedProviders" : status.reason,
      message,
    };
  });
  return sortStatuses([...judged, ...providers]);
}
