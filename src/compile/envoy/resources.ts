/** policy -> Envoy's resources. Pure. */
import type { PolicySnapshot } from "../../policy/snapshot.ts";
import { clusters } from "./clusters.ts";
import type { Json } from "./json.ts";
import { attemptListener, gatewayListener, type ListenerAddress } from "./listeners.ts";
import { attemptRoutes, externalRoutes, gatewayRoutes } from "./routes.ts";

export interface EnvoyOptions {
  /** In-cluster: everything. */
  readonly gateway: ListenerAddress;
  /** What an ingress may publish; undefined for none. */
  readonly external: ListenerAddress | undefined;
  /** PEM bundle that upstreams' certificates are verified against. */
  readonly caFile: string;
}

export interface EnvoyConfiguration {
  readonly cluster: readonly Json[];
  readonly listener: readonly Json[];
  readonly route: readonly Json[];
}

export function compileEnvoy(policy: PolicySnapshot, options: EnvoyOptions): EnvoyConfiguration {
  const { external } = options;
  return {
    cluster: clusters(policy.providers.values(), { caFile: options.caFile }),
    listener: [
      gatewayListener("svc-gateway", options.gateway, "svc-gateway"),
      ...(external === undefined
        ? []
        : [gatewayListener("svc-external", external, "svc-external")]),
      attemptListener("svc-attempt"),
    ],
    route: [
      gatewayRoutes("svc-gateway"),
      ...(external === undefined ? [] : [externalRoutes("svc-external")]),
      attemptRoutes("svc-attempt"),
    ],
  };
}
