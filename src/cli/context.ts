/** What the command line needs of the world around it: in tests, all of it is made up. */
import type { Backend, Target } from "./backend.ts";

export interface Context {
  /** The package's root: Envoy's bootstrap, the gateway's program. */
  readonly root: string;
  readonly version: string;
  readonly env: NodeJS.ProcessEnv;
  readonly stdout: (text: string) => void;
  readonly stderr: (text: string) => void;
  /** All of standard input, as text. */
  readonly stdin: () => Promise<string>;
  /** Asks on the terminal without showing what is typed; undefined where there is no terminal. */
  readonly askSecret: ((question: string) => Promise<string>) | undefined;
  /** Of a command that did its work and has something bad to tell. */
  readonly setExitCode: (code: number) => void;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly random: (bytes: number) => Uint8Array;
  readonly fetch: typeof fetch;
  readonly backend: (target: Target) => Backend;
}
