/** A private folder for the time of a command. A signal that ends the command removes it too. */
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/**
 * Registers a step that undoes what the command has done elsewhere. It runs once: when the returned
 * function is called, or before the folder is removed, also by a signal.
 */
export type AtEnd = (step: () => Promise<void>) => () => Promise<void>;

/**
 * Runs an action with the folder, and removes the folder when the action has ended. After a signal
 * the steps of {@link AtEnd} run first; a second signal does not wait for them.
 */
export async function withTemporaryFolder<Result>(
  prefix: string,
  action: (dir: string, atEnd: AtEnd) => Promise<Result>,
): Promise<Result> {
  const dir = mkdtempSync(path.join(os.tmpdir(), prefix));
  const steps = new Set<() => Promise<void>>();
  let isEnding = false;
  const atEnd: AtEnd = (step) => {
    steps.add(step);
    return async () => {
      if (steps.delete(step)) await step();
    };
  };
  const end = (): void => {
    rmSync(dir, { recursive: true, force: true });
    for (const name of SIGNALS) process.off(name, onSignal);
  };
  const leave = (signal: NodeJS.Signals): void => {
    end();
    // Without a listener the signal has its ordinary effect.
    process.kill(process.pid, signal);
  };
  const onSignal = (signal: NodeJS.Signals): void => {
    if (isEnding || steps.size === 0) return leave(signal);
    isEnding = true;
    void undo(steps).then(() => leave(signal));
  };
  for (const name of SIGNALS) process.on(name, onSignal);
  try {
    return await action(dir, atEnd);
  } finally {
    // The signal is about to end the process: nobody is told what became of the action.
    if (isEnding) await forever();
    await undo(steps);
    end();
  }
}

/** Also keeps the process from ending for want of work. */
function forever(): Promise<never> {
  return new Promise(() => setInterval(() => undefined, 60_000));
}

/** Runs the steps, those included that are added meanwhile. */
async function undo(steps: Set<() => Promise<void>>): Promise<void> {
  for (const step of steps) {
    steps.delete(step);
    await step().catch(() => undefined);
  }
}
