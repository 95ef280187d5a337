/** Resources of the gateway for the mock MCP server, with every kind of check on. */
import { createHash } from "node:crypto";
import { UPSTREAM_KEY } from "./answers.ts";
import { ALLOWED_TOOLS, HIDDEN_TOOLS, MCP_PATH } from "./mcp-messages.ts";
import type { McpEndpoint } from "./target.ts";

const NAME = "bench-mcp";

/** Returns the raw access key of a server and a number. */
export function accessKey(name: string, number: number): string {
  return `svc_${`${name.replaceAll("-", "0")}0${number}`.padStart(43, "b")}`;
}

export const MCP_ENDPOINT: McpEndpoint = { path: `/ext/mcp/${NAME}`, key: accessKey(NAME, 0) };

/** A limit that is counted and never reached. */
const MANY = 1_000_000_000;

/**
 * @param options.port of the server on this machine
 * @param options.name of the Provider
 * @param options.keys number of access keys
 */
export function mcpResources(options: {
  readonly port: number;
  readonly name?: string;
  readonly keys?: number;
}): readonly object[] {
  const { port, name = NAME, keys = 1 } = options;
  const metadata = { name };
  return [
    { apiVersion: "v1", kind: "Secret", metadata, stringData: { token: UPSTREAM_KEY } },
    {
      apiVersion: "svc.io/v1",
      kind: "Provider",
      metadata,
      spec: {
        type: "mcp",
        mcp: { url: `http://127.0.0.1:${port}${MCP_PATH}` },
        auth: { type: "api-key", secretRef: name },
        policy: { mcp: { allowedTools: ALLOWED_TOOLS, deniedTools: HIDDEN_TOOLS.slice(0, 5) } },
        externalAccess: { enabled: true, maxRequestsPerDay: MANY },
      },
    },
    ...Array.from({ length: keys }, (_, number) => ({
      apiVersion: "svc.io/v1",
      kind: "AccessKey",
      metadata: { name: `${name}-${number}` },
      spec: {
        provider: name,
        keySHA256: createHash("sha256").update(accessKey(name, number)).digest("hex"),
        restrictions: { deniedMcpTools: HIDDEN_TOOLS.slice(5, 10) },
        limits: { maxRequestsPerDay: MANY },
      },
    })),
  ];
}
