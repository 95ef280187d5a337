/** Paths of the MCP gateway. */
import { EXTERNAL_PREFIX } from "../../access/audience.ts";

const PREFIX = `${EXTERNAL_PREFIX}/mcp/`;

/** Transports of clients: Streamable HTTP, or the two paths of the older one. */
export type McpEndpoint = "streamable" | "sse" | "message";

export interface McpRoute {
  /** Name of the Provider. */
  readonly server: string;
  readonly endpoint: McpEndpoint;
  /** Query without `?`. */
  readonly query: string;
}

const NAME = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/**
 * Parses `/ext/mcp/{name}`, `/ext/mcp/{name}/sse` and `/ext/mcp/{name}/message`.
 * @param path as Envoy has normalised it, with its query
 */
export function parseMcpRoute(path: string): McpRoute | undefined {
  const [pathname = "", query = ""] = path.split("?", 2);
  if (!pathname.startsWith(PREFIX)) return undefined;
  const [server = "", rest = "", ...others] = pathname.slice(PREFIX.length).split("/");
  if (!NAME.test(server) || others.length > 0) return undefined;
  if (rest !== "" && rest !== "sse" && rest !== "message") return undefined;
  return { server, endpoint: rest === "" ? "streamable" : rest, query };
}

/** Paths of the surfaces, as expressions of RE2. */
export const STREAMABLE_PATH = `${PREFIX}[^/]+/?`;
export const OLD_TRANSPORT_PATH = `${PREFIX}[^/]+/(?:sse|message)`;
