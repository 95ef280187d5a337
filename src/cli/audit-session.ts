/** Duration of `svc audit`: until SIGINT, or until the reader of its output closes it (EPIPE). */
import { setTimeout as sleep } from "node:timers/promises";

export interface AuditSession {
  /** Waits until there may be new records; returns false when the session has ended. */
  wait(): Promise<boolean>;
  /** Lets the process handle the end of the session; returns false when it has ended. */
  turn(): Promise<boolean>;
  end(): void;
}

const POLL_MS = 300;

export function processSession(): AuditSession {
  const over = new AbortController();
  const stop = (): void => over.abort();
  const left = (error: NodeJS.ErrnoException): void => {
    if (error.code !== "EPIPE") throw error;
    stop();
  };
  process.once("SIGINT", stop).once("SIGTERM", stop);
  process.stdout.on("error", left);
  return {
    wait: async () => {
      await sleep(POLL_MS, undefined, { signal: over.signal }).catch(() => undefined);
      return !over.signal.aborted;
    },
    turn: async () => {
      await new Promise(setImmediate);
      return !over.signal.aborted;
    },
    // The error listener stays, because the last write may still fail.
    end: () => {
      process.off("SIGINT", stop).off("SIGTERM", stop);
    },
  };
}
