/** JSON-RPC 2.0 as MCP uses it: https://www.jsonrpc.org/specification */

/** Id of a request. MCP allows no null, and no fraction. */
export type RequestId = string | number;

/** Error codes of JSON-RPC and of MCP's revision 2026-07-28. */
export const RpcCode = {
  parseError: -32_700,
  invalidRequest: -32_600,
  invalidParams: -32_602,
  internalError: -32_603,
  /** A header differs from the body that it mirrors. */
  headerMismatch: -32_020,
} as const;

export interface RpcError {
  readonly code: number;
  readonly message: string;
  /** Stable code of ours, and what else a program may read. */
  readonly data?: Readonly<Record<string, unknown>>;
}

/**
 * Renders an error answer.
 * @param id undefined if the request's id could not be read: the member is then absent
 * (2026-07-28), which older clients accept as well
 */
export function renderError(id: RequestId | undefined, error: RpcError): string {
  return JSON.stringify({ jsonrpc: "2.0", ...(id === undefined ? {} : { id }), error });
}

/** Renders an error as the answer to each request of a frame. */
export function renderErrors(
  { ids, isBatch }: { readonly ids: readonly RequestId[]; readonly isBatch: boolean },
  error: RpcError,
): string {
  const [first, ...more] = ids;
  if (isBatch && ids.length > 0) return `[${ids.map((id) => renderError(id, error)).join(",")}]`;
  return renderError(more.length === 0 ? first : undefined, error);
}
