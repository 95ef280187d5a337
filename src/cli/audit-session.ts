/**
 * How long `svc audit` goes on: until SIGINT, or until whoever reads its output has left (EPIPE).
 */
import { setTimeout as sleep } from "node:timers/promises";

export interface AuditSession {
  /** Until there may be something new; false when it is over. */
  wait(): Promise<boolean>;
  /** Lets the process hear that it is over; false when it is. */
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
    // The listener of errors stays: the last write may still fail.
    end: () => {
      process.off("SIGINT", stop).off("SIGTERM", stop);
    },
  };
}
