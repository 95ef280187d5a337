/** Clusters: our own servers, each ModelProvider and its chain, and the internal attempts. */
import { isIP } from "node:net";
import type { CircuitBreakers, Cluster as ClusterConfig } from "../../gen/messages.ts";
import type { McpServerPolicy, ModelProviderPolicy } from "../../policy/snapshot.ts";
import type { Endpoint } from "../../resources/base-url.ts";
import {
  httpOptions,
  oneEndpoint,
  socketAddress,
  unixSocket,
  upstreamTls,
} from "./cluster-parts.ts";
import { duration } from "./duration.ts";
import { Extension, extension } from "./extensions.ts";
import { KEEPALIVE } from "./http.ts";
import {
  ATTEMPT_LISTENER,
  BUFFER_LIMIT_BYTES,
  chainCluster,
  Cluster,
  localCluster,
  MAX_ATTEMPTS,
  mcpCluster,
  relayedCluster,
  RelaySocket,
  upstreamCluster,
} from "./names.ts";
import type { LocalEndpoint } from "./surface.ts";

const CONNECT_TIMEOUT_MS = 5_000;

/**
 * Envoy's defaults (1,024 requests, 3 concurrent retries) are for small services; the policy has
 * its own limits.
 */
const UNLIMITED: CircuitBreakers = {
  thresholds: [
    {
      maxConnections: 100_000,
      maxPendingRequests: 100_000,
      maxRequests: 100_000,
      maxRetries: 100_000,
    },
  ],
};

/**
 * Builds the cluster of a processor: one stream a request, on connections of HTTP/2.
 * @param runDir folder of its socket
 */
export function processorCluster({ name, socket }: LocalEndpoint, runDir: string): ClusterConfig {
  return {
    ...serviceCluster({ name, socket }, runDir),
    ...httpOptions({
      explicitHttpConfig: {
        http2ProtocolOptions: {
          maxConcurrentStreams: 2_147_483_647,
          initialStreamWindowSize: 1_048_576,
          initialConnectionWindowSize: 16_777_216,
          // The peer is this gateway's own process, and each frame belongs to a request that the
          // listeners have let in. Envoy's default of 10,000 is meant for peers that are not
          // trusted; a wave of clients that leave would end the connection, and every request.
          maxOutboundFrames: 1_000_000,
          maxOutboundControlFrames: 1_000_000,
          // A processor that hangs is noticed: its streams end, requests fail closed.
          connectionKeepalive: KEEPALIVE,
        },
      },
    }),
  };
}

/**
 * Builds the cluster of an HTTP server of ours.
 * @param runDir folder of its socket
 */
export function serviceCluster({ name, socket }: LocalEndpoint, runDir: string): ClusterConfig {
  return {
    ...oneEndpoint(localCluster(name), unixSocket(`${runDir}/${socket}`)),
    connectTimeout: duration(CONNECT_TIMEOUT_MS),
    circuitBreakers: UNLIMITED,
  };
}

/** Builds the clusters of the providers, and those of the attempts after the first. */
export function providerClusters(
  providers: Iterable<ModelProviderPolicy>,
  { caFile, runDir }: { readonly caFile: string; readonly runDir: string },
): ClusterConfig[] {
  const out: ClusterConfig[] = [attemptsCluster()];
  for (const provider of providers) {
    if (provider.readsToEnd) {
      out.push(
        relayCluster(upstreamCluster(provider), runDir),
        providerCluster(relayedCluster(provider), provider, caFile),
      );
    } else {
      out.push(providerCluster(upstreamCluster(provider), provider, caFile));
    }
    out.push(chain(provider));
  }
  return out;
}

/** The relay, instead of the provider. */
function relayCluster(name: string, runDir: string): ClusterConfig {
  return {
    ...oneEndpoint(name, unixSocket(`${runDir}/${RelaySocket.relay}`)),
    connectTimeout: "1s",
    perConnectionBufferLimitBytes: BUFFER_LIMIT_BYTES,
    circuitBreakers: UNLIMITED,
  };
}

/** Time after which a silent connection is probed, and between probes, in seconds. */
const PROBE_SECONDS = 60;

/** Builds the cluster of an MCP server. Its streams may be silent for hours. */
export function mcpServerCluster(server: McpServerPolicy, caFile: string): ClusterConfig {
  return {
    ...providerCluster(mcpCluster(server), server, caFile),
    upstreamConnectionOptions: {
      tcpKeepalive: { keepaliveTime: PROBE_SECONDS, keepaliveInterval: PROBE_SECONDS },
    },
  };
}

function providerCluster(
  name: string,
  provider: { readonly endpoint: Pick<Endpoint, "host" | "port" | "tls"> },
  caFile: string,
): ClusterConfig {
  const { host, port, tls } = provider.endpoint;
  const named = isIP(host) === 0;
  return {
    ...oneEndpoint(name, socketAddress(host, port)),
    // LOGICAL_DNS: a vendor's name resolves to other addresses at each lookup, and connections to
    // old ones stay usable.
    type: named ? "LOGICAL_DNS" : "STATIC",
    dnsLookupFamily: named ? "V4_PREFERRED" : undefined,
    connectTimeout: duration(CONNECT_TIMEOUT_MS),
    perConnectionBufferLimitBytes: BUFFER_LIMIT_BYTES,
    circuitBreakers: UNLIMITED,
    transportSocket: tls ? upstreamTls({ caFile, host }) : undefined,
    ...httpOptions({
      commonHttpProtocolOptions: { idleTimeout: "60s" },
      autoConfig: tls ? {} : undefined,
      explicitHttpConfig: tls ? undefined : { httpProtocolOptions: {} },
    }),
  };
}

/**
 * Priority 0 is the provider itself; each retry moves to the next priority, and thereby into the
 * internal listener.
 */
function chain(provider: ModelProviderPolicy): ClusterConfig {
  return {
    name: chainCluster(provider),
    connectTimeout: duration(CONNECT_TIMEOUT_MS),
    lbPolicy: "CLUSTER_PROVIDED",
    clusterType: extension(Extension.aggregate, {
      clusters: [upstreamCluster(provider), Cluster.attempts],
    }),
    circuitBreakers: UNLIMITED,
  };
}

function attemptsCluster(): ClusterConfig {
  return {
    name: Cluster.attempts,
    type: "STATIC",
    connectTimeout: duration(CONNECT_TIMEOUT_MS),
    perConnectionBufferLimitBytes: BUFFER_LIMIT_BYTES,
    circuitBreakers: UNLIMITED,
    loadAssignment: {
      clusterName: Cluster.attempts,
      endpoints: Array.from({ length: MAX_ATTEMPTS - 1 }, (_, priority) => ({
        priority,
        lbEndpoints: [
          {
            endpoint: {
              address: {
                envoyInternalAddress: {
                  serverListenerName: ATTEMPT_LISTENER,
                  endpointId: `attempt-${priority + 2}`,
                },
              },
            },
          },
        ],
      })),
    },
  };
}
