/** The list of what the gateway serves to callers. */
import type { Surface } from "../envoy/config/surface.ts";
import { llmSurfaces } from "../llm/surface.ts";
import { mcpSurfaces } from "../mcp/gateway/surface.ts";
import { API_SURFACES } from "./api-surface.ts";
import type { GatewayOptions } from "./options.ts";

/** Returns the surfaces of the gateway: the next one is one more line here. */
export function gatewaySurfaces(options: Pick<GatewayOptions, "uploadIdleMs">): readonly Surface[] {
  return [...llmSurfaces(options), ...mcpSurfaces(options), ...API_SURFACES];
}
