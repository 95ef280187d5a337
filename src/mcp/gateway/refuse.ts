/** Refusals in the form of JSON-RPC. */
import type { HeaderChanges, ImmediateReply } from "../../envoy/ext-proc/messages.ts";
import { publicError } from "../../access/errors.ts";
import { type RefusalDetails, Refusal, refusalHeaders } from "../../access/refusal.ts";
import type { FrameError } from "../protocol/frame.ts";
import { renderErrors, type RequestId, RpcCode, type RpcError } from "../protocol/json-rpc.ts";

/** McpRefusal is a refusal with its code in JSON-RPC, and the requests that it answers. */
export class McpRefusal extends Refusal {
  /** Code of JSON-RPC. */
  readonly rpcCode: number;
  /** Ids of the refused requests; empty if they are not known. */
  readonly ids: readonly RequestId[];
  readonly isBatch: boolean;
  /**
   * The client gets the status 200: as an answer to each of its requests, which every client shows.
   * Other statuses end the connection of some clients.
   */
  readonly isAnswer: boolean;

  constructor(
    refusal: Refusal,
    details: {
      readonly rpcCode?: number;
      readonly ids?: readonly RequestId[];
      readonly isBatch?: boolean;
      readonly isAnswer?: boolean;
    } = {},
  ) {
    super(refusal.error, refusal satisfies RefusalDetails);
    this.rpcCode = details.rpcCode ?? rpcCodeOf(refusal);
    this.ids = details.ids ?? [];
    this.isBatch = details.isBatch ?? false;
    this.isAnswer = (details.isAnswer ?? false) && this.ids.length > 0;
  }

  static ofFrame(error: FrameError): McpRefusal {
    const refusal = new Refusal(publicError("invalid_request", error.message));
    return new McpRefusal(refusal, {
      rpcCode: error.code,
      ids: error.id === undefined ? [] : [error.id],
    });
  }
}

/**
 * Codes of ours are HTTP statuses, positive numbers: those of JSON-RPC are negative, and MCP
 * reserves a part of them (2026-07-28, section "Error codes").
 */
function rpcCodeOf({ error }: Refusal): number {
  if (error.code === "invalid_request") return RpcCode.invalidRequest;
  if (error.code === "header_mismatch") return RpcCode.headerMismatch;
  return error.status;
}

/**
 * Renders a refusal.
 * @param extra headers to set besides
 */
export function refusalReply(
  refusal: Refusal,
  callId: string,
  extra: NonNullable<HeaderChanges["set"]> = [],
): ImmediateReply {
  const own = refusal instanceof McpRefusal ? refusal : new McpRefusal(refusal);
  const { error } = own;
  const rpc: RpcError = {
    code: own.rpcCode,
    message: error.message,
    data: { code: error.code, status: error.status },
  };
  return {
    status: own.isAnswer ? 200 : error.status,
    headers: { set: [...refusalHeaders(own, callId), ...challenge(error.status), ...extra] },
    body: renderErrors(own, rpc),
  };
}

/**
 * RFC 6750 section 3. Without `resource_metadata`, so that clients do not look for an authorization
 * server: a key is required.
 */
function challenge(status: number): readonly (readonly [string, string])[] {
  return status === 401 ? [["www-authenticate", "Bearer"]] : [];
}
