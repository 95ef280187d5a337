/** Metrics of the bridge. */
import { Counter, Gauge, type Registry } from "prom-client";

export type BridgeSide = "clients" | "servers";

export class BridgeMetrics {
  readonly sessions: Gauge<"side">;
  readonly dropped: Counter<"side">;

  constructor(registry: Registry) {
    this.sessions = new Gauge({
      name: "svc_mcp_bridge_sessions",
      help:
        "Open sessions of the old HTTP+SSE transport of MCP: of clients that speak it, and with " +
        "servers that speak it.",
      labelNames: ["side"],
      registers: [registry],
    });
    this.dropped = new Counter({
      name: "svc_mcp_bridge_dropped_messages_total",
      help:
        "Messages of MCP servers that were dropped, because too many waited for a stream of " +
        "their client, or because they were not JSON-RPC.",
      labelNames: ["side"],
      registers: [registry],
    });
    for (const side of ["clients", "servers"] as const) {
      this.sessions.set({ side }, 0);
      this.dropped.inc({ side }, 0);
    }
  }
}
