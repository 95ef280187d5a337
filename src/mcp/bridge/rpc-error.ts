/** JSON-RPC errors that the bridge answers with. */
import type http from "node:http";
import type { RpcId } from "./frame.ts";

/** Codes of JSON-RPC, and those that MCP's own implementations use for the transport. */
export const RpcCode = {
  invalidRequest: -32_600,
  internal: -32_603,
  transport: -32_000,
  sessionNotFound: -32_001,
} as const;

/** @param id null if the error belongs to no request */
export function rpcError(id: RpcId | null, code: number, message: string): string {
  return JSON.stringify({ jsonrpc: "2.0", id, error: { code, message } });
}

/** Answers with a JSON-RPC error, unless the answer has begun. */
export function refuse(
  response: http.ServerResponse,
  status: number,
  message: string,
  code: number = RpcCode.invalidRequest,
  id: RpcId | null = null,
): void {
  if (response.headersSent || response.destroyed) return;
  const body = rpcError(id, code, message);
  response
    .writeHead(status, {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(body),
    })
    .end(body);
}
