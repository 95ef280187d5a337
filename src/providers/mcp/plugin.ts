/** The plugin of MCP servers. Not used by sidecars yet: see `src/mcp` for the gateway. */
import { MCP_AUTH_TYPES, MCP_CONFIG_KEYS } from "../../resources/mcp-server.ts";
import { ConfigError, type ProviderPlugin } from "../contract.ts";

export const plugin: ProviderPlugin = {
  providerName: "mcp",
  defaultHosts: [],
  hostPatterns: [],
  authTypes: MCP_AUTH_TYPES,
  scopeKeys: {},
  scopeIgnoresCase: false,
  configKeys: MCP_CONFIG_KEYS,
  bodies: [],
  credentialHeaders: ["authorization", "cookie"],
  credentialQuery: [],
  create: ({ binding }) => {
    throw new ConfigError(`Provider ${binding}: type mcp is served by the gateway only`);
  },
};
