/** policy -> Envoy's resources. Pure. */
import type { PolicySnapshot } from "../../policy/snapshot.ts";
import { clusters } from "./clusters.ts";
import { duration, type Json } from "./json.ts";
import {
  attemptListener,
  EXTERNAL_IDLE,
  gatewayListener,
  INTERNAL_IDLE,
  type ListenerAddress,
  relayListener,
} from "./listeners.ts";
import { attemptRoutes, externalRoutes, gatewayRoutes, relayRoutes } from "./routes.ts";

export interface EnvoyOptions {
  /** In-cluster: everything. */
  readonly gateway: ListenerAddress;
  /** What an ingress may publish; undefined for none. */
  readonly external: ListenerAddress | undefined;
  /** Longest pause of an upload, milliseconds. */
  readonly uploadIdleMs: number;
  /** Folder of the Unix sockets between Envoy and the gateway service. */
  readonly runDir: string;
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
  const uploadIdle = duration(options.uploadIdleMs);
  return {
    cluster: clusters(policy.providers.values(), options),
    listener: [
      gatewayListener({ name: "svc-gateway", at: options.gateway, idle: INTERNAL_IDLE }),
      ...(external === undefined
        ? []
        : [gatewayListener({ name: "svc-external", at: external, idle: EXTERNAL_IDLE })]),
      attemptListener("svc-attempt"),
      relayListener("svc-relay", options.runDir),
    ],
    route: [
      gatewayRoutes("svc-gateway", uploadIdle),
      ...(external === undefined ? [] : [externalRoutes("svc-external", uploadIdle)]),
      attemptRoutes("svc-attempt"),
      relayRoutes("svc-relay"),
    ],
  };
}
