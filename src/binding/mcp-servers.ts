/**
 * MCP servers of a sidecar: the processor of their answers. This module is loaded only if the
 * sidecar has such a binding.
 */
import path from "node:path";
import type { SidecarMcpServer } from "../envoy/config/sidecar.ts";
import { serveExtProc } from "../envoy/ext-proc/server.ts";
import type { StreamServer } from "../envoy/grpc/serve.ts";
import { MAX_MESSAGE_BYTES } from "../mcp/protocol/content.ts";
import { BRIDGE_LIMITS, BRIDGE_TIMES } from "../mcp/bridge/limits.ts";
import { serveStdio, type StdioServer } from "../mcp/stdio/stdio-server.ts";
import type { Logger } from "../platform/log.ts";
import { LIST_METHODS } from "../mcp/protocol/names.ts";
import { type FindCall, type McpCall, SidecarAnswer } from "../mcp/sidecar/answers.ts";
import { idsOf } from "../mcp/protocol/frame.ts";
import type { Clock } from "../platform/clock.ts";
import { readMessage } from "../providers/mcp/message.ts";
import { McpInstance } from "../providers/mcp/plugin.ts";
import type { ForwardedCall } from "./pipeline.ts";
import type { StartedBinding } from "./reload.ts";

export interface McpServersOptions {
  readonly bindings: readonly StartedBinding[];
  /** Private folder for sockets. */
  readonly runDir: string;
  /** User of the servers that run in the sidecar; undefined for its own. */
  readonly user: { readonly uid: number; readonly gid: number; readonly home: string } | undefined;
  /** Environment of the sidecar. */
  readonly env: NodeJS.ProcessEnv;
  readonly log: Logger;
  readonly clock: Clock;
  readonly callOf: (id: string) => ForwardedCall | undefined;
  readonly onDefect: (error: unknown) => void;
}

export interface McpServers {
  /** For Envoy's configuration. */
  readonly servers: readonly SidecarMcpServer[];
  close(): Promise<void>;
}

/** Maximum number of child processes of a binding. */
const MAX_SESSIONS = 16;

const DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin";

/** Answers are filtered up to this size, in bytes. */
const MAX_ANSWER_BYTES = 64 * 1_048_576;

export async function startMcpServers(options: McpServersOptions): Promise<McpServers> {
  const { bindings, runDir, log, clock, callOf, onDefect } = options;
  const find: FindCall = (id) => {
    const call = callOf(id);
    return call === undefined ? undefined : mcpCallOf(call);
  };
  const processor: StreamServer = await serveExtProc({
    path: path.join(runDir, "mcp.sock"),
    createProcessor: (exchange) => new SidecarAnswer(exchange, find),
    maxMessageBytes: MAX_ANSWER_BYTES,
    clock,
    onDefect,
  });
  const servers: SidecarMcpServer[] = [];
  const local: StdioServer[] = [];
  for (const { instance, name } of bindings) {
    if (!(instance instanceof McpInstance)) continue;
    const { command } = instance.server;
    const socket =
      command === undefined ? undefined : path.join(runDir, `mcp-${servers.length}.sock`);
    servers.push(serverOf(instance, socket));
    if (command === undefined || socket === undefined) continue;
    local.push(
      await serveStdio({
        socket,
        path: instance.server.path,
        program: { command, secrets: instance.environment, ...surroundings(options) },
        maxSessions: MAX_SESSIONS,
        limits: BRIDGE_LIMITS,
        times: BRIDGE_TIMES,
        clock,
        log: log.child({ mcp: name }),
        onDefect,
      }),
    );
  }
  return {
    servers,
    close: async () => {
      await Promise.all(local.map(async (server) => server.close()));
      await processor.close();
    },
  };
}

function surroundings({ env, user }: McpServersOptions) {
  const home = user?.home ?? env["HOME"] ?? "/";
  return { path: env["PATH"] ?? DEFAULT_PATH, home, user };
}

function serverOf({ server }: McpInstance, socket: string | undefined): SidecarMcpServer {
  const { host, path: target, transport } = server;
  return {
    host,
    path: target.split("?", 1)[0] ?? "",
    hasMessagePaths: transport === "sse",
    socket,
    maxBytes: MAX_MESSAGE_BYTES,
  };
}

function mcpCallOf({ arrival: { request }, verdict }: ForwardedCall): McpCall | "other" {
  const { instance, policy } = verdict.binding;
  const { items } = policy;
  if (!(instance instanceof McpInstance) || items === undefined) return "other";
  const isOpen = (["tools", "prompts", "resources"] as const).every((kind) => items.isOpen(kind));
  const enforces = policy.enforcement === "enforce" && !isOpen;
  if (request.method !== "POST") {
    const { transport } = instance.server;
    const isStream = request.method === "GET";
    const opens = isStream && transport === "sse";
    const openEndpoint = opens ? (data: string) => instance.endpoints.open(data) : undefined;
    const filters = isStream && enforces;
    return { policy: items, filters, isAnsweredElsewhere: false, ids: [], openEndpoint };
  }
  const isAnsweredElsewhere = !instance.isStream(request);
  const other = { policy: items, isAnsweredElsewhere, openEndpoint: undefined };
  const read = readMessage(request);
  if (read.kind === "misread") return { ...other, filters: enforces, ids: [] };
  const lists = read.frame.messages.some((message) => {
    const kind =
      message.kind !== "answer" && Object.hasOwn(LIST_METHODS, message.method)
        ? LIST_METHODS[message.method]
        : undefined;
    return kind !== undefined && !items.isOpen(kind);
  });
  const ids = idsOf(read.frame);
  return { ...other, filters: enforces && lists, ids };
}
