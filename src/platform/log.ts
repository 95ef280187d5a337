/** Structured logs by pino, one JSON object a line. Never a key, never a prompt: callers pass ids and counts. */
import { pino, type Logger } from "pino";

export type { Logger };

export function createLog(options: { readonly level: string; readonly name: string }): Logger {
  return pino(
    { level: options.level, name: options.name, base: { pid: process.pid }, timestamp: pino.stdTimeFunctions.isoTime },
    pino.destination({ dest: 2, sync: false, minLength: 0 }),
  );
}
