/**
 * Structured logs by pino, one JSON object per line. Writes are asynchronous, so that a slow reader
 * of standard error does not delay requests; in return, the last lines before an exit may overtake
 * those of the previous write. Callers pass ids and counts, never a key or a prompt.
 */
import { pino, type Logger } from "pino";
import { cutText } from "./client-text.ts";

export type { Logger };

const BUFFER_BYTES = 16_384;
const FLUSH_MS = 100;

/**
 * Final bound for every caller: longer texts are truncated as in client-text.ts. Client text has a
 * smaller bound of its own; this one leaves room for a stack.
 */
const LONGEST_TEXT = 8_192;
const MOST_MEMBERS = 100;
const DEEPEST = 4;

export function createLog(options: { readonly level: string; readonly name: string }): Logger {
  return pino(
    {
      level: options.level,
      name: options.name,
      base: { pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      hooks: {
        logMethod(args, method) {
          method.apply(this, args.map((arg) => bounded(arg, 0)) as typeof args);
        },
      },
    },
    // Many lines are written at once; no line waits longer than the flush interval.
    pino.destination({
      dest: 2,
      sync: false,
      minLength: BUFFER_BYTES,
      maxWrite: 2 * BUFFER_BYTES,
      periodicFlush: FLUSH_MS,
    }),
  );
}

/** Returns `value` itself if nothing in it is too long. */
function bounded(value: unknown, depth: number): unknown {
  if (typeof value === "string")
    return value.length <= LONGEST_TEXT ? value : cutText(value, LONGEST_TEXT);
  if (Array.isArray(value)) return boundedList(value, depth);
  if (!isPlain(value)) return value;
  if (depth === DEEPEST) return "[too deep]";
  let copy: Record<string, unknown> | undefined;
  for (const [name, member] of Object.entries(value)) {
    const kept = bounded(member, depth + 1);
    if (kept !== member) (copy ??= { ...value })[name] = kept;
  }
  return copy ?? value;
}

function boundedList(list: readonly unknown[], depth: number): unknown {
  if (depth === DEEPEST) return "[too deep]";
  const kept = list.slice(0, MOST_MEMBERS).map((member) => bounded(member, depth + 1));
  const missing = list.length - kept.length;
  if (missing > 0) return [...kept, `…${missing} more`];
  return kept.every((member, index) => member === list[index]) ? list : kept;
}

/** Errors, secrets and similar objects have their own serialized form. */
function isPlain(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
