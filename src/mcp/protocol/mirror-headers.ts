/**
 * Headers that mirror the body: `Mcp-Method`, `Mcp-Name` and `MCP-Protocol-Version` (revision
 * 2026-07-28, section "Standard headers"). Whoever routes or filters by the headers, behind us too,
 * must see what the body says; a request whose headers differ is refused, in every revision.
 */
import { isObject, type CallMessage, type Frame } from "./frame.ts";
import { ITEM_METHODS, McpHeader, NAME_MEMBER, STATELESS_REVISION, VERSION_META } from "./names.ts";

type Headers = ReadonlyMap<string, string>;

/** Returns the revision that a message's body states (`params._meta`). */
export function statedRevision({ params }: CallMessage): string | undefined {
  const meta = params["_meta"];
  const version = isObject(meta) ? meta[VERSION_META] : undefined;
  return typeof version === "string" ? version : undefined;
}

/**
 * Returns what differs, as a sentence for the client; undefined if nothing does.
 *
 * @param headers by lower-case name; a repeated header's values are joined with `, `
 */
export function mismatch(frame: Frame, headers: Headers): string | undefined {
  const method = headers.get(McpHeader.method);
  const name = headers.get(McpHeader.name);
  const version = headers.get(McpHeader.protocolVersion);
  const [message, ...others] = frame.messages;
  if (frame.isBatch || others.length > 0 || message === undefined || message.kind === "answer") {
    return method === undefined && name === undefined
      ? undefined
      : `Only a single request or notification may have ${McpHeader.method} or ${McpHeader.name}.`;
  }
  const stated = statedRevision(message);
  if (stated !== undefined && version !== stated) {
    return `The header ${McpHeader.protocolVersion} must be equal to the _meta member of the body.`;
  }
  const isStateless = stated !== undefined && stated >= STATELESS_REVISION;
  if (method !== undefined || isStateless) {
    const problem = differs(McpHeader.method, method, message.method);
    if (problem !== undefined) return problem;
  }
  const named = nameOf(message);
  if (name !== undefined && named === undefined && !message.method.startsWith("tasks/")) {
    return `The header ${McpHeader.name} does not belong to the method of the body.`;
  }
  if (named !== undefined && (name !== undefined || isStateless)) {
    return differs(McpHeader.name, name, named);
  }
  return undefined;
}

function nameOf({ method, params }: CallMessage): string | undefined {
  const kind = Object.hasOwn(ITEM_METHODS, method) ? ITEM_METHODS[method] : undefined;
  const value = kind === undefined ? undefined : params[NAME_MEMBER[kind]];
  return typeof value === "string" ? value : undefined;
}

function differs(header: string, value: string | undefined, expected: string): string | undefined {
  if (value === undefined) return `The header ${header} is missing.`;
  const decoded = decodeMirror(value);
  return decoded === expected ? undefined : `The header ${header} must be equal to the body.`;
}

/** `=?base64?<standard base64 of UTF-8>?=`, for values that no header can hold. */
const ENCODED = /^=\?base64\?([A-Za-z0-9+/]*={0,2})\?=$/;

/** Returns the value of a mirror header; undefined if its encoding is not canonical. */
function decodeMirror(value: string): string | undefined {
  if (!value.startsWith("=?base64?")) return value;
  const [, text] = ENCODED.exec(value) ?? [];
  if (text === undefined) return undefined;
  const bytes = Buffer.from(text, "base64");
  const decoded = bytes.toString("utf8");
  const isCanonical = bytes.toString("base64") === text && Buffer.from(decoded).equals(bytes);
  return isCanonical ? decoded : undefined;
}
