/**
 * An audit chain that cannot be written, read or trusted. The message says what, where and how to
 * fix it.
 */
export class AuditError extends Error {
  override readonly name = "AuditError";
}

/** What went wrong with a file, without a stack: ENOSPC, EACCES, ... */
export function reasonOf(error: unknown): string {
  const code = (error as NodeJS.ErrnoException | null)?.code;
  if (typeof code === "string") return code;
  return error instanceof Error ? error.message : String(error);
}
