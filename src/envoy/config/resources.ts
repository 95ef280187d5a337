/** Compiles the policy into Envoy's resources. Pure. */
import type { PolicySnapshot } from "../../policy/snapshot.ts";
import type { EnvoyResources } from "../xds/snapshot.ts";
import { clusters } from "./clusters.ts";
import { duration } from "./duration.ts";
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
  /** Internal listener, which serves everything. */
  readonly gateway: ListenerAddress;
  /** Listener for an ingress; undefined for none. */
  readonly external: ListenerAddress | undefined;
  /** Maximum pause of an upload in milliseconds. */
  readonly uploadIdleMs: number;
  /** Folder of the Unix sockets between Envoy and the gateway service. */
  readonly runDir: string;
  /** PEM bundle against which upstreams' certificates are verified. */
  readonly caFile: string;
}

/** Compiles the configuration of the gateway's Envoy. */
export function compileEnvoy(policy: PolicySnapshot, options: EnvoyOptions): EnvoyResources {
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
