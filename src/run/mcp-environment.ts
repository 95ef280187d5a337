/** Variables by which an agent finds its MCP servers. */
import type { BoundMcpServer } from "../resources/binding-spec.ts";

/** The parts of a binding that are read here. */
export interface NamedServer {
  /** Name of the Provider. */
  readonly name: string;
  readonly mcp?: Pick<BoundMcpServer, "host" | "path"> | undefined;
}

/** Returns `SVC_MCP_<PROVIDER>_URL` for each Provider of type `mcp`. */
export function mcpEnvironment(bindings: readonly NamedServer[]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    bindings.flatMap(({ name, mcp }) => {
      if (mcp === undefined) return [];
      const provider = name.toUpperCase().replaceAll(/[^A-Z0-9]/g, "_");
      return [[`SVC_MCP_${provider}_URL`, `https://${mcp.host}${mcp.path}`] as const];
    }),
  );
}
