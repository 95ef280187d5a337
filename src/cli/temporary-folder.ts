/** A private folder for the time of a command. A signal that ends the command removes it too. */
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** Runs an action with the folder, and removes the folder when the action has ended. */
export async function withTemporaryFolder<Result>(
  prefix: string,
  action: (dir: string) => Promise<Result>,
): Promise<Result> {
  const dir = mkdtempSync(path.join(os.tmpdir(), prefix));
  const remove = (): void => rmSync(dir, { recursive: true, force: true });
  const onSignal = (signal: NodeJS.Signals): void => {
    remove();
    for (const name of SIGNALS) process.off(name, onSignal);
    // Without a listener the signal has its ordinary effect.
    process.kill(process.pid, signal);
  };
  for (const name of SIGNALS) process.on(name, onSignal);
  try {
    return await action(dir);
  } finally {
    for (const name of SIGNALS) process.off(name, onSignal);
    remove();
  }
}
