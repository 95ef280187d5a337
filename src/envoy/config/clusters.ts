/** Clusters: one for each ModelProvider, its chain, and the internal attempts. */
import { isIP } from "node:net";
import type { CircuitBreakers, Cluster as ClusterConfig } from "../../gen/messages.ts";
import type { ModelProviderPolicy } from "../../policy/snapshot.ts";
import {
  httpOptions,
  oneEndpoint,
  socketAddress,
  unixSocket,
  upstreamTls,
} from "./cluster-parts.ts";
import { duration } from "./duration.ts";
import { Extension, extension } from "./extensions.ts";
import {
  ATTEMPT_LISTENER,
  BUFFER_LIMIT_BYTES,
  chainCluster,
  Cluster,
  MAX_ATTEMPTS,
  relayedCluster,
  RelaySocket,
  upstreamCluster,
} from "./names.ts";

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

/** Builds the clusters of the providers, and those of the attempts after the first. */
export function clusters(
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

function providerCluster(
  name: string,
  provider: ModelProviderPolicy,
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
