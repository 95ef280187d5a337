/** Compiles the policy and the surfaces into Envoy's resources. Pure. */
import type { PolicySnapshot } from "../../policy/snapshot.ts";
import type { EnvoyResources } from "../xds/snapshot.ts";
import {
  mcpServerCluster,
  processorCluster,
  providerClusters,
  serviceCluster,
} from "./clusters.ts";
import {
  attemptListener,
  EXTERNAL_IDLE,
  gatewayListener,
  INTERNAL_IDLE,
  loopListener,
  type IdleTimes,
  type ListenerAddress,
  relayListener,
} from "./listeners.ts";
import { attemptRoutes, callerRoutes, relayRoutes } from "./routes.ts";
import {
  CallerListener,
  type CallerListenerName,
  checkSurfaces,
  type ProcessorEndpoint,
  processorsOf,
  servicesOf,
  type Surface,
  surfacesOf,
} from "./surface.ts";
import { MCP_SERVERS_BRIDGE } from "./names.ts";

export interface EnvoyOptions {
  /** The surfaces that callers reach. */
  readonly surfaces: readonly Surface[];
  /** The processor of attempts after the first. */
  readonly attempts: ProcessorEndpoint;
  /** Internal listener, which serves everything. */
  readonly gateway: ListenerAddress;
  /** Listener for an ingress; undefined for none. */
  readonly external: ListenerAddress | undefined;
  /** Folder of the Unix sockets between Envoy and the gateway service. */
  readonly runDir: string;
  /** PEM bundle against which upstreams' certificates are verified. */
  readonly caFile: string;
}

interface Listening {
  readonly name: CallerListenerName;
  readonly at: ListenerAddress;
  readonly idle: IdleTimes;
}

/**
 * Compiles the configuration of the gateway's Envoy.
 * @throws Error if the surfaces cannot be served together
 */
export function compileEnvoy(policy: PolicySnapshot, options: EnvoyOptions): EnvoyResources {
  const { attempts, external, gateway, runDir, surfaces } = options;
  checkSurfaces(surfaces, [attempts]);
  const looped = surfacesOf(surfaces, CallerListener.loop);
  const loops = looped.length === 0 ? [] : [CallerListener.loop];
  const listening: Listening[] = [
    { name: CallerListener.internal, at: gateway, idle: INTERNAL_IDLE },
  ];
  if (external !== undefined)
    listening.push({ name: CallerListener.external, at: external, idle: EXTERNAL_IDLE });
  return {
    cluster: [
      ...[...processorsOf(surfaces), attempts].map((one) => processorCluster(one, runDir)),
      ...servicesOf(surfaces).map((one) => serviceCluster(one, runDir)),
      ...loops.map(() => serviceCluster(MCP_SERVERS_BRIDGE, runDir)),
      ...providerClusters(policy.providers.values(), options),
      ...[...policy.mcpServers.values()].map((server) => mcpServerCluster(server, options.caFile)),
    ],
    listener: [
      ...listening.map((one) =>
        gatewayListener({ ...one, processors: processorsOf(surfacesOf(surfaces, one.name)) }),
      ),
      ...loops.map((name) => loopListener(name, processorsOf(looped), runDir)),
      attemptListener("svc-attempt", attempts),
      relayListener("svc-relay", runDir),
    ],
    route: [
      ...[...listening.map(({ name }) => name), ...loops].map((name) =>
        callerRoutes(name, surfacesOf(surfaces, name)),
      ),
      attemptRoutes("svc-attempt"),
      relayRoutes("svc-relay"),
    ],
  };
}
