/**
 * The bridge between the old HTTP+SSE transport of MCP (revision 2024-11-05) and Streamable HTTP.
 * It consists of two HTTP servers behind Envoy, which convert frames and know no policy, key or
 * credential: one serves clients of the old transport, the other speaks to servers of it.
 */
import type http from "node:http";
import type { Registry } from "prom-client";
import type { Clock } from "../../platform/clock.ts";
import type { Logger } from "../../platform/log.ts";
import type { SessionBus } from "./bus.ts";
import { ClientBridge } from "./clients.ts";
import { BRIDGE_LIMITS, BRIDGE_TIMES, type BridgeLimits, type BridgeTimes } from "./limits.ts";
import { BridgeMetrics } from "./metrics.ts";
import { ServerBridge } from "./servers.ts";

export interface BridgeOptions {
  /** Unix socket of Envoy's listener that serves `/ext/mcp/{name}` with all checks. */
  readonly gatewaySocket: string;
  /** Unix socket of Envoy's listener that routes by `x-svc-relay` to an upstream. */
  readonly egressSocket: string;
  /** Connects the replicas; the caller closes it after the bridge. */
  readonly bus: SessionBus;
  readonly clock: Clock;
  readonly log: Logger;
  readonly registry: Registry;
  readonly random: () => number;
  readonly onDefect: (error: unknown) => void;
  readonly limits?: Partial<BridgeLimits>;
  readonly times?: Partial<BridgeTimes>;
}

export interface Bridge {
  /** Serves clients of the old transport. The caller lets it listen. */
  readonly clients: http.Server;
  /** Serves Streamable HTTP for upstreams of the old transport. The caller lets it listen. */
  readonly servers: http.Server;
  /** Ends all sessions, and closes both servers. */
  close(): Promise<void>;
}

export function createBridge(options: BridgeOptions): Bridge {
  const context = {
    ...options,
    metrics: new BridgeMetrics(options.registry),
    limits: { ...BRIDGE_LIMITS, ...options.limits },
    times: { ...BRIDGE_TIMES, ...options.times },
  };
  const clientBridge = new ClientBridge(context, options.gatewaySocket);
  const serverBridge = new ServerBridge(context, options.egressSocket);
  const clients = clientBridge.createServer();
  const servers = serverBridge.createServer();
  return {
    clients,
    servers,
    close: async () => {
      for (const server of [clients, servers]) server.close();
      // Clients first: their sessions may be those of servers here.
      await clientBridge.close();
      await serverBridge.close();
      for (const server of [clients, servers]) server.closeAllConnections();
    },
  };
}
