/** Tools of an MCP server in the control API: which it offers, and who may use them. */
import {
  type UpstreamToolsOptions,
  UpstreamToolsError,
  upstreamTools,
} from "../mcp/gateway/upstream-tools.ts";
import { McpPolicy } from "../mcp/protocol/item-policy.ts";
import type { AccessKeyPolicy, McpLists, PolicySnapshot } from "../policy/snapshot.ts";

/** A tool that an MCP server offers, and what the policy says. */
export interface ToolView {
  readonly name: string;
  readonly description?: string;
  /** Whether the Provider's policy allows it. */
  readonly allowed: boolean;
  /** Names of the AccessKeys that may use it, sorted. */
  readonly keys: readonly string[];
}

export interface ToolsView {
  readonly namespace: string;
  /** Name of the Provider. */
  readonly provider: string;
  /** `audit` if denied calls are recorded, and not refused. */
  readonly enforcement: "enforce" | "audit";
  /** In the order in which the server lists them. */
  readonly tools: readonly ToolView[];
}

/** Path of the control API. @param provider name of the Provider */
export function toolsPath(namespace: string, provider: string): string {
  return `/providers/${encodeURIComponent(namespace)}/${encodeURIComponent(provider)}/tools`;
}

/** ToolsError is a Provider whose tools cannot be listed. */
export class ToolsError extends Error {
  override readonly name = "ToolsError";
  /** HTTP status of the control API. */
  readonly status: 404 | 409 | 502;

  constructor(status: 404 | 409 | 502, message: string) {
    super(message);
    this.status = status;
  }
}

export interface ToolsOptions extends UpstreamToolsOptions {
  readonly policy: () => PolicySnapshot;
}

/** Asks the server of a Provider for its tools. @throws ToolsError */
export async function viewTools(
  options: ToolsOptions,
  namespace: string,
  name: string,
): Promise<ToolsView> {
  const snapshot = options.policy();
  const id = `${namespace}/${name}`;
  const server = snapshot.mcpServers.get(id);
  if (server === undefined) {
    const why = snapshot.closedMcpServers.get(id);
    if (why === undefined)
      throw new ToolsError(
        404,
        `there is no Provider ${name} of type mcp in namespace ${namespace}`,
      );
    throw new ToolsError(
      409,
      why === "disabled"
        ? `the Provider ${name} is not open to access keys: set spec.externalAccess.enabled to true`
        : `the Provider ${name} is not ready: see svc get provider ${name} -o wide`,
    );
  }
  const offered = await upstreamTools(server, options).catch((error: unknown) => {
    if (error instanceof UpstreamToolsError) throw new ToolsError(502, error.message);
    throw error;
  });
  const own = new McpPolicy(server.lists);
  const holders = keysOf(snapshot, server.key, options.clock.now()).map(
    (key) => [key.name, new McpPolicy(server.lists, ...listsOf(key))] as const,
  );
  return {
    namespace,
    provider: name,
    enforcement: server.auditOnly ? "audit" : "enforce",
    tools: offered.map((tool) => ({
      name: tool.name,
      ...(tool.description === undefined ? {} : { description: tool.description }),
      allowed: own.deny("tools", tool.name) === undefined,
      keys: holders.flatMap(([key, policy]) =>
        policy.deny("tools", tool.name) === undefined ? [key] : [],
      ),
    })),
  };
}

/** Returns the AccessKeys of a server that are accepted now, sorted by name. */
export function keysOf(
  { keysByHash }: PolicySnapshot,
  server: string,
  now: number,
): readonly AccessKeyPolicy[] {
  // A key in rotation has two hashes.
  const keys = new Set([...keysByHash.values()].map(({ key }) => key));
  return [...keys]
    .filter(
      ({ mcp, revoked, expiresAt = Number.POSITIVE_INFINITY }) =>
        mcp?.server === server && !revoked && expiresAt > now,
    )
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

function listsOf({ mcp }: AccessKeyPolicy): readonly McpLists[] {
  return mcp === undefined ? [] : [mcp.lists];
}
