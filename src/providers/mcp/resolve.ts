/** Actions of requests to an MCP server: `tools:call` for the method `tools/call`. */
import type { ClientMessage } from "../../mcp/protocol/frame.ts";
import type { UsedItem } from "../../mcp/protocol/judge.ts";
import type { ActionResolution, ResolvedAction, ServiceRequest } from "../contract.ts";
import { readMessage } from "./message.ts";

const NOTHING = [{ kind: "none" }] as const;

/** Methods without a slash belong to the session. */
const SESSION = "session";

/** Methods of which an action can be made. */
const METHOD = /^[A-Za-z0-9_.-]+(?:\/[A-Za-z0-9_.-]+)*$/;

/** Resolves a request to the endpoint of a server. */
export function resolveMessage(request: ServiceRequest): ActionResolution {
  switch (request.method) {
    case "GET":
      return resolved([{ action: `${SESSION}:stream`, resources: NOTHING }]);
    case "DELETE":
      return resolved([{ action: `${SESSION}:end`, resources: NOTHING }]);
    case "POST":
      return resolveFrame(request);
    default:
      return { kind: "unresolved", reason: "MCP servers are called by POST, GET and DELETE" };
  }
}

function resolveFrame(request: ServiceRequest): ActionResolution {
  const read = readMessage(request);
  if (read.kind === "misread") return { kind: "unresolved", reason: read.message };
  const { frame, judged } = read;
  const odd = frame.messages.find((one) => one.kind !== "answer" && !METHOD.test(one.method));
  if (odd !== undefined)
    return { kind: "unresolved", reason: "The method's name has characters that none has" };
  return resolved(frame.messages.flatMap((message) => actionsOf(message, judged.used)));
}

function actionsOf(message: ClientMessage, used: readonly UsedItem[]): readonly ResolvedAction[] {
  if (message.kind === "answer") return [{ action: `${SESSION}:answer`, resources: NOTHING }];
  const action = actionOf(message.method);
  const items = used.filter((one) => one.message === message);
  if (items.length === 0) return [{ action, resources: NOTHING }];
  return items.map(({ kind, name }) => ({ action, resources: NOTHING, item: { kind, name } }));
}

/** Returns `tools:call` for `tools/call`, `session:ping` for `ping`. */
function actionOf(method: string): string {
  const slash = method.lastIndexOf("/");
  if (slash < 0) return `${SESSION}:${method}`;
  return `${method.slice(0, slash)}:${method.slice(slash + 1)}`;
}

function resolved(actions: readonly ResolvedAction[]): ActionResolution {
  return { kind: "resolved", actions };
}
