/** Names shared by Envoy's configuration and the processors. */
import type { McpServerPolicy, ModelProviderPolicy } from "../../policy/snapshot.ts";

/** Clusters that are always there. */
export const Cluster = {
  /** Discovery and access logs, in `envoy/bootstrap.yaml`. */
  control: "svc_control",
  /** Endpoints of the internal listener, one priority for each attempt after the first. */
  attempts: "svc_attempts",
} as const;

/** Cluster of a processor or an HTTP server of ours, by its name. */
export function localCluster(name: string): string {
  return `svc_${name}`;
}

/** Names that would make one of the clusters that are always there. */
export const RESERVED_NAMES: readonly string[] = ["control", "attempts"];

/**
 * Maximum number of attempts of a request, the first included: the priorities of {@link
 * Cluster.attempts} plus one.
 */
export const MAX_ATTEMPTS = 32;

export const ATTEMPT_LISTENER = "svc-attempt";

/**
 * Headers between our processors and Envoy's router. Clients' own are removed, and none is
 * forwarded to an upstream.
 */
export const InternalHeader = {
  /** Cluster of the first attempt. */
  cluster: "x-svc-cluster",
  /** Cluster of an attempt after the first. */
  upstream: "x-svc-upstream",
  /** Cluster after the relay: see `llm/attempts/relay.ts`. */
  relay: "x-svc-relay",
  /** Cluster of an MCP server. */
  server: "x-svc-server",
  /** To the bridge: the access key and the server of a request, an opaque text. */
  mcpOwner: "x-svc-mcp-owner",
  /** To the bridge: the cluster of the MCP server that it converts for. */
  mcpEgress: "x-svc-mcp-egress",
  /** Name of the header that carries the credential at an MCP server: see echoes.ts. */
  credential: "x-svc-credential",
  /** Address of the connection's peer, as Envoy sees it: see `access/client-address.ts`. */
  peer: "x-svc-peer",
  /** On Envoy's local replies: `<response flags> <details>`. */
  local: "x-svc-local",
} as const;

/** Header that carries the call id: upstreams know it, and Envoy's access log contains it. */
export const CALL_ID_HEADER = "x-request-id";

/**
 * A provider's address as part of its clusters' names: a changed address is another cluster. A
 * request prepared for the old address can only be sent there, so a key never reaches an unintended
 * host.
 */
function place({ key, endpoint }: ModelProviderPolicy): string {
  return `${key}@${endpoint.tls ? "https" : "http"}://${endpoint.host}:${endpoint.port}`;
}

/** Cluster of a provider's own address, used behind the relay. */
export function relayedCluster(provider: ModelProviderPolicy): string {
  return `relayed/${place(provider)}`;
}

/** Unix sockets of the relay, in the run folder. */
export const RelaySocket = {
  /** The relay's socket, to which Envoy sends. */
  relay: "relay.sock",
  /** Envoy's socket, to which the relay sends. */
  envoy: "relay-envoy.sock",
} as const;

/** Cluster of the first hop to a ModelProvider. */
export function upstreamCluster(provider: ModelProviderPolicy): string {
  return `upstream/${place(provider)}`;
}

/** Cluster of a ModelProvider whose later priorities are the attempts after the first. */
export function chainCluster(provider: ModelProviderPolicy): string {
  return `chain/${place(provider)}`;
}

/** Cluster of an MCP server. */
export function mcpCluster({ key, endpoint }: McpServerPolicy): string {
  return `mcp/${key}@${endpoint.tls ? "https" : "http"}://${endpoint.host}:${endpoint.port}`;
}

/** Unix sockets of the bridge between the transports of MCP, in the run folder. */
export const McpSocket = {
  /** The bridge's socket for clients of the old transport. */
  clients: "mcp-clients.sock",
  /** The bridge's socket in place of servers that speak the old transport. */
  servers: "mcp-servers.sock",
  /** Envoy's socket, on which the bridge calls the gateway for its clients. */
  loop: "mcp-loop.sock",
} as const;

/** The bridge in place of MCP servers that speak the old transport. */
export const MCP_SERVERS_BRIDGE = { name: "mcp-servers", socket: McpSocket.servers } as const;

/** The bridge for MCP clients that speak the old transport. */
export const MCP_CLIENTS_BRIDGE = { name: "mcp-clients", socket: McpSocket.clients } as const;

/**
 * Size of Envoy's buffers. It is above the body limit of every surface, so that an allowed body is
 * never truncated, and so that its translation (which may be longer) can still be retried: a body
 * above this limit would silently disable retries.
 */
export const BUFFER_LIMIT_BYTES = 48 * 1024 * 1024;
