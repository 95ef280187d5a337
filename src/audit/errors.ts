/**
 * Error for an audit chain that cannot be written, read or trusted. The message states the problem,
 * the place and the fix.
 */
export class AuditError extends Error {
  override readonly name = "AuditError";
}

/** Returns the cause of a file error without a stack: ENOSPC, EACCES, ... */
export function reasonOf(error: unknown): string {
  const code = (error as NodeJS.ErrnoException | null)?.code;
  if (typeof code === "string") return code;
  return error instanceof Error ? error.message : String(error);
}
