/** The command line's dependencies, which tests replace completely. */
import type { Backend, BackendTarget } from "./backend.ts";
import type { ClusterAccess } from "./cluster-access.ts";
import type { ClusterTarget } from "./target.ts";

export interface Context {
  /** The package's root: Envoy's bootstrap, the gateway's program. */
  readonly root: string;
  readonly version: string;
  readonly env: NodeJS.ProcessEnv;
  readonly stdout: (text: string) => void;
  readonly stderr: (text: string) => void;
  /** All of standard input, as text. */
  readonly stdin: () => Promise<string>;
  /** Prompts on the terminal without echo; undefined if there is no terminal. */
  readonly askSecret: ((question: string) => Promise<string>) | undefined;
  /** Sets the exit code of a command that completed but reports a problem. */
  readonly setExitCode: (code: number) => void;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly sleep: (ms: number) => Promise<void>;
  readonly random: (bytes: number) => Uint8Array;
  readonly fetch: typeof fetch;
  readonly backend: (target: BackendTarget) => Promise<Backend>;
  /**
   * Runs a program with this process's input and output.
   * @returns its exit code; undefined if there is no such program
   */
  readonly runProgram: (file: string, args: readonly string[]) => Promise<number | undefined>;
  /** Operations on an installation in a cluster besides those on its objects. */
  readonly cluster: (target: ClusterTarget) => Promise<ClusterAccess>;
}
