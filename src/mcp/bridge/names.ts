/** Headers between Envoy, the MCP processor and the bridge. Clients cannot set them. */
import { InternalHeader } from "../../envoy/config/names.ts";

export const BridgeHeader = {
  /** Opaque text that names the access key and the server. */
  owner: "x-svc-mcp-owner",
  /** Cluster of the upstream, from the processor. */
  egress: "x-svc-mcp-egress",
  /** Cluster of the upstream, for the listener that routes by it. */
  relay: InternalHeader.relay,
} as const;

/** Headers of ours begin with this; none reaches an upstream. */
export const INTERNAL_PREFIX = "x-svc-";
