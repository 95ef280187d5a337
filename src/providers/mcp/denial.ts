/** Denials in the form of JSON-RPC, which MCP clients show. */
import { idsOf } from "../../mcp/protocol/frame.ts";
import { renderErrors } from "../../mcp/protocol/json-rpc.ts";
import type { Denial, ServiceRequest, WordedDenial } from "../contract.ts";
import { readMessage } from "./message.ts";

/**
 * Codes of denials that answer the requests of a message: with status 200, since other statuses end
 * the connection of some clients.
 */
const ANSWERS: ReadonlySet<string> = new Set([
  "action_denied",
  "out_of_scope",
  "tool_not_allowed",
  "unresolved_action",
]);

export function wordDenial(request: ServiceRequest, denial: Denial): WordedDenial | undefined {
  if (request.method !== "POST") return undefined;
  const { code, status, message, details } = denial;
  const read = readMessage(request);
  if (read.kind === "misread") {
    if (code !== "malformed_request") return undefined;
    const data = { code: read.code, status: read.status };
    const error = { code: read.rpcCode, message: read.message, data };
    return worded(renderErrors({ ids: read.ids, isBatch: false }, error), read.status);
  }
  const { frame } = read;
  const ids = idsOf(frame);
  const error = { code: status, message, data: { code, status, ...details } };
  const body = renderErrors({ ids, isBatch: frame.isBatch }, error);
  return worded(body, ANSWERS.has(code) && ids.length > 0 ? 200 : status);
}

function worded(body: string, status: number): WordedDenial {
  return { status, headers: [["content-type", "application/json"]], body };
}
