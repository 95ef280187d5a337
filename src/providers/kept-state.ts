/** KeptState is one secret text of a Provider that outlives the sidecar's process. */
import type { StateFolder } from "../platform/state-folder.ts";

/** KeptState is shared by all sidecars of a Provider on this machine. */
export interface KeptState {
  /**
   * Runs `action` while no other sidecar of the Provider does.
   * @throws Error if the signal aborts the wait, or the storage fails
   */
  exclusively<T>(signal: AbortSignal, action: () => Promise<T>): Promise<T>;
  /** Returns the text kept last; undefined for none. @throws Error if the storage fails */
  read(): string | undefined;
  /** Replaces the text, on the disk when this returns. @throws Error if the storage fails */
  write(text: string): void;
}

/** Keeps the state of a Provider as a file of the folder. */
export function keptIn(folder: StateFolder, namespace: string, provider: string): KeptState {
  // Neither part contains a dot: both are DNS labels.
  const name = `${namespace}.${provider}.json`;
  return {
    exclusively: (signal, action) => folder.locked(name, signal, action),
    read: () => folder.read(name),
    write: (text) => folder.write(name, text),
  };
}
