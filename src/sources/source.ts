/** Where resources come from: a folder of files, or the Kubernetes API. */
import type { LoadResult } from "./load-result.ts";

export interface Source {
  /** Returns the newest load. It keeps the last good version of every object. */
  current(): LoadResult;
  /** Reads the source now, and returns the result after its listeners were called. */
  refresh(): Promise<LoadResult>;
  /**
   * Calls a listener after each effective change from now on. A source that was just opened calls
   * none before its opener had the chance to add one: `current()` has its first load.
   * @returns a function that removes the listener
   */
  onChange(listener: (load: LoadResult) => void): () => void;
  /**
   * Returns the place where an object is defined, for people, by the object's id: `file:line`, or
   * an address in the cluster. undefined if it is not defined.
   */
  placeOf(id: string): string | undefined;
  /** Ends it. No listener is called afterwards. */
  close(): Promise<void>;
}
