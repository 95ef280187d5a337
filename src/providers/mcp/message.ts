/** A message of an agent to its MCP server, as the plugin reads it. */
import { contentProblem } from "../../mcp/protocol/content.ts";
import { type Frame, FrameError, idsOf, parseFrame } from "../../mcp/protocol/frame.ts";
import { McpPolicy } from "../../mcp/protocol/item-policy.ts";
import { judgeFrame, type JudgedFrame } from "../../mcp/protocol/judge.ts";
import { type RequestId, RpcCode } from "../../mcp/protocol/json-rpc.ts";
import { mismatch } from "../../mcp/protocol/mirror-headers.ts";
import type { ServiceRequest } from "../contract.ts";

export type AgentMessage =
  | { readonly kind: "frame"; readonly frame: Frame; readonly judged: JudgedFrame }
  /** Servers might read it in different ways. */
  | {
      readonly kind: "misread";
      readonly status: 400 | 415;
      /** Code of JSON-RPC. */
      readonly rpcCode: number;
      readonly code: string;
      readonly message: string;
      readonly ids: readonly RequestId[];
    };

/** The binding's own policy judges items: see src/binding/judge.ts. */
const NO_POLICY = new McpPolicy();

const read = new WeakMap<ServiceRequest, AgentMessage>();

/** Reads the body of a `POST`. A request is read once. */
export function readMessage(request: ServiceRequest): AgentMessage {
  let message = read.get(request);
  if (message === undefined) read.set(request, (message = messageOf(request)));
  return message;
}

function messageOf({ headers, body }: ServiceRequest): AgentMessage {
  const wrong = (
    code: string,
    message: string,
    details: {
      readonly status?: 400 | 415;
      readonly rpcCode?: number;
      readonly ids?: readonly RequestId[];
    } = {},
  ): AgentMessage => {
    const { status = 400, rpcCode = status, ids = [] } = details;
    return { kind: "misread", status, rpcCode, code, message, ids };
  };
  if (body === undefined) {
    const { invalidRequest } = RpcCode;
    return wrong("invalid_request", "The request has no body.", { rpcCode: invalidRequest });
  }
  const problem = contentProblem(headers);
  if (problem !== undefined) return wrong(problem.code, problem.message, problem);
  try {
    const frame = parseFrame(body);
    const judged = judgeFrame(frame, NO_POLICY);
    const differs = mismatch(frame, headers);
    if (differs === undefined) return { kind: "frame", frame, judged };
    const details = { rpcCode: RpcCode.headerMismatch, ids: idsOf(frame) };
    return wrong("header_mismatch", differs, details);
  } catch (error) {
    if (!(error instanceof FrameError)) throw error;
    const ids = error.id === undefined ? [] : [error.id];
    return wrong("invalid_request", error.message, { rpcCode: error.code, ids });
  }
}
