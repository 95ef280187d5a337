/** The surfaces of the MCP gateway, and its processor. */
import { MCP_CLIENTS_BRIDGE } from "../../envoy/config/names.ts";
import {
  CallerListener,
  type ProcessorEndpoint,
  type Surface,
} from "../../envoy/config/surface.ts";
import { MAX_MESSAGE_BYTES } from "../protocol/content.ts";
import { McpHeader } from "../protocol/names.ts";
import { OLD_TRANSPORT_PATH, STREAMABLE_PATH } from "./route.ts";

/** The processor of requests: see processor.ts. */
export const MCP_PROCESSOR: ProcessorEndpoint = {
  name: "mcp",
  socket: "mcp.sock",
  headers: [
    { exact: ":method" },
    { exact: ":path" },
    { exact: ":authority" },
    { exact: ":status" },
    { exact: "accept" },
    { exact: "authorization" },
    { exact: "x-api-key" },
    { exact: "api-key" },
    { exact: "x-goog-api-key" },
    { exact: "content-type" },
    { exact: "content-length" },
    { exact: "content-encoding" },
    { exact: "origin" },
    { exact: "www-authenticate" },
    { prefix: "access-control-" },
    { exact: "x-forwarded-for" },
    { prefix: "mcp-" },
    { exact: McpHeader.lastEventId },
    { prefix: "x-svc-" },
  ],
  mode: {
    requestHeaderMode: "SEND",
    requestBodyMode: "BUFFERED",
    requestTrailerMode: "SKIP",
    responseHeaderMode: "SEND",
    responseBodyMode: "NONE",
    responseTrailerMode: "SKIP",
  },
  changesMode: true,
  messageTimeoutMs: 15_000,
  seesRequestsWithoutRoute: false,
};

/**
 * Returns the surfaces of the MCP gateway.
 * @param options.uploadIdleMs a request whose body makes no progress for this time ends with 408
 */
export function mcpSurfaces({
  uploadIdleMs,
}: {
  readonly uploadIdleMs: number;
}): readonly Surface[] {
  const outside = [CallerListener.internal, CallerListener.external] as const;
  return [
    {
      name: "mcp",
      // The bridge calls it for clients of the old transport.
      listeners: [...outside, CallerListener.loop],
      paths: [{ kind: "template", regex: STREAMABLE_PATH }],
      methods: undefined,
      destination: { kind: "server", processor: MCP_PROCESSOR },
      bodyLimitBytes: MAX_MESSAGE_BYTES,
      timeouts: { answerMs: undefined, idleMs: uploadIdleMs },
    },
    {
      name: "mcp-old-transport",
      listeners: outside,
      paths: [{ kind: "template", regex: OLD_TRANSPORT_PATH }],
      methods: undefined,
      destination: { kind: "service", service: MCP_CLIENTS_BRIDGE, processor: MCP_PROCESSOR },
      bodyLimitBytes: MAX_MESSAGE_BYTES,
      // A stream may be silent for hours.
      timeouts: { answerMs: undefined, idleMs: 0 },
    },
  ];
}
