/** Clusters: one for each ModelProvider, its chain, and the internal attempts. */
import { isIP } from "node:net";
import type { ModelProviderPolicy } from "../../policy/snapshot.ts";
import { duration, type Json, Message, typed } from "./json.ts";
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
const UNLIMITED: Json = {
  thresholds: [
    {
      maxConnections: 100_000,
      maxPendingRequests: 100_000,
      maxRequests: 100_000,
      maxRetries: 100_000,
    },
  ],
};

export function clusters(
  providers: Iterable<ModelProviderPolicy>,
  { caFile, runDir }: { readonly caFile: string; readonly runDir: string },
): Json[] {
  const out: Json[] = [attemptsCluster()];
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
function relayCluster(name: string, runDir: string): Json {
  const address = { pipe: { path: `${runDir}/${RelaySocket.relay}` } };
  return {
    name,
    type: "STATIC",
    connectTimeout: "1s",
    perConnectionBufferLimitBytes: BUFFER_LIMIT_BYTES,
    circuitBreakers: UNLIMITED,
    loadAssignment: {
      clusterName: name,
      endpoints: [{ lbEndpoints: [{ endpoint: { address } }] }],
    },
  };
}

function providerCluster(name: string, provider: ModelProviderPolicy, caFile: string): Json {
  const { host, port, tls } = provider.endpoint;
  return {
    name,
    // LOGICAL_DNS: a vendor's name resolves to other addresses at each lookup, and connections to
    // old ones stay usable.
    ...(isIP(host) === 0
      ? { type: "LOGICAL_DNS", dnsLookupFamily: "V4_PREFERRED" }
      : { type: "STATIC" }),
    connectTimeout: duration(CONNECT_TIMEOUT_MS),
    perConnectionBufferLimitBytes: BUFFER_LIMIT_BYTES,
    circuitBreakers: UNLIMITED,
    loadAssignment: {
      clusterName: name,
      endpoints: [
        {
          lbEndpoints: [
            { endpoint: { address: { socketAddress: { address: host, portValue: port } } } },
          ],
        },
      ],
    },
    ...(tls ? { transportSocket: tlsSocket(host, caFile) } : {}),
    typedExtensionProtocolOptions: {
      "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": typed(Message.httpProtocolOptions, {
        commonHttpProtocolOptions: { idleTimeout: "60s" },
        ...(tls ? { autoConfig: {} } : { explicitHttpConfig: { httpProtocolOptions: {} } }),
      }),
    },
  };
}

function tlsSocket(host: string, caFile: string): Json {
  const san: Json =
    isIP(host) === 0
      ? { sanType: "DNS", matcher: { exact: host } }
      : { sanType: "IP_ADDRESS", matcher: { exact: host } };
  return {
    name: "envoy.transport_sockets.tls",
    typedConfig: typed(Message.upstreamTls, {
      ...(isIP(host) === 0 ? { sni: host } : {}),
      commonTlsContext: {
        tlsParams: { tlsMinimumProtocolVersion: "TLSv1_2" },
        validationContext: { trustedCa: { filename: caFile }, matchTypedSubjectAltNames: [san] },
      },
    }),
  };
}

/**
 * Priority 0 is the provider itself; each retry moves to the next priority, and thereby into the
 * internal listener.
 */
function chain(provider: ModelProviderPolicy): Json {
  return {
    name: chainCluster(provider),
    connectTimeout: duration(CONNECT_TIMEOUT_MS),
    lbPolicy: "CLUSTER_PROVIDED",
    clusterType: {
      name: "envoy.clusters.aggregate",
      typedConfig: typed(Message.aggregate, {
        clusters: [upstreamCluster(provider), Cluster.attempts],
      }),
    },
    circuitBreakers: UNLIMITED,
  };
}

function attemptsCluster(): Json {
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
