/**
 * Structured logs by pino, one JSON object a line. Writes are asynchronous, so that a slow reader of standard error holds
 * up no request; in return the last lines before an exit may overtake those of the write before. Never a key, never a prompt: callers pass ids and counts.
 */
import { pino, type Logger } from "pino";

export type { Logger };

const BUFFER_BYTES = 16_384;
const FLUSH_MS = 100;

export function createLog(options: { readonly level: string; readonly name: string }): Logger {
  return pino(
    {
      level: options.level,
      name: options.name,
      base: { pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
    },
    // One write for many lines; none waits longer than the flush interval.
    pino.destination({
      dest: 2,
      sync: false,
      minLength: BUFFER_BYTES,
      maxWrite: 2 * BUFFER_BYTES,
      periodicFlush: FLUSH_MS,
    }),
  );
}
