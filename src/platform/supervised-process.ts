/** A child process that is restarted with backoff, and that does not survive this process. */
import { type ChildProcess, spawn, type StdioOptions } from "node:child_process";
import { existsSync } from "node:fs";
import { createInterface } from "node:readline";
import type { Logger } from "pino";

export interface SupervisedProcessOptions {
  /** Name in log lines. */
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  /** Standard input for each start, used for secrets; no input if undefined. */
  readonly input?: string;
  readonly log: Logger;
  /**
   * Gives the process a session of its own, so that signals of the terminal (Ctrl-C) do not reach
   * it.
   */
  readonly ownSession?: boolean;
  /**
   * Receives each line of the output; if undefined, the output passes directly to ours, at no cost.
   */
  readonly onLine?: (line: string) => void;
  /** Called when the process ends without having been stopped. */
  readonly onExit?: (exit: {
    readonly code: number | null;
    readonly signal: NodeJS.Signals | null;
  }) => void;
}

const FIRST_BACKOFF_MS = 50;
const MAX_BACKOFF_MS = 5_000;
/**
 * Minimum duration of a successful run, after which the backoff starts again from its beginning.
 */
const GOOD_RUN_MS = 10_000;

/**
 * util-linux's setpriv asks the kernel to signal the child when its parent dies, also by SIGKILL
 * (PR_SET_PDEATHSIG). Every Debian has it. On other systems a child notices the death itself or is
 * found by its pid.
 */
const SETPRIV = "/usr/bin/setpriv";

export class SupervisedProcess {
  readonly #options: SupervisedProcessOptions;
  #child: ChildProcess | undefined;
  #backoffMs = FIRST_BACKOFF_MS;
  #stopping = false;
  #restart: NodeJS.Timeout | undefined;
  #restarts = 0;

  constructor(options: SupervisedProcessOptions) {
    this.#options = options;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  get restarts(): number {
    return this.#restarts;
  }

  start(): void {
    const { command, args, env, name, log, onLine, ownSession: detached = false } = this.#options;
    const { input } = this.#options;
    const output = onLine === undefined ? "inherit" : "pipe";
    const stdio: StdioOptions = [input === undefined ? "ignore" : "pipe", output, output];
    const child = existsSync(SETPRIV)
      ? spawn(SETPRIV, ["--pdeathsig", "TERM", "--", command, ...args], { env, stdio, detached })
      : spawn(command, args, { env, stdio, detached });
    const startedAt = performance.now();
    this.#child = child;
    // A process that does not read its whole input is not an error.
    child.stdin?.on("error", () => undefined).end(input);
    for (const stream of [child.stdout, child.stderr]) {
      if (stream !== null && onLine !== undefined)
        createInterface({ input: stream }).on("line", onLine);
    }
    // A command that cannot be spawned emits `error`, but never `exit`.
    child.on("error", (error) => {
      log.error({ process: name, error: error.message }, "cannot be started");
      if (child.pid === undefined) ended(null, null);
    });
    child.on("exit", (code, signal) => ended(code, signal));
    const ended = (code: number | null, signal: NodeJS.Signals | null): void => {
      this.#child = undefined;
      if (this.#stopping) return;
      this.#options.onExit?.({ code, signal });
      if (this.#stopping) return;
      if (performance.now() - startedAt > GOOD_RUN_MS) this.#backoffMs = FIRST_BACKOFF_MS;
      log.warn(
        { process: name, code, signal, restartInMs: this.#backoffMs },
        "ended; starting it again",
      );
      this.#restart = setTimeout(() => {
        this.#restarts++;
        this.start();
      }, this.#backoffMs);
      this.#backoffMs = Math.min(MAX_BACKOFF_MS, this.#backoffMs * 2);
    };
  }

  /** Sends SIGTERM, and SIGKILL after `graceMs`. */
  async stop(graceMs: number): Promise<void> {
    this.#stopping = true;
    clearTimeout(this.#restart);
    const child = this.#child;
    if (child?.pid === undefined || child.exitCode !== null) return;
    const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    child.kill("SIGTERM");
    const kill = setTimeout(() => child.kill("SIGKILL"), graceMs);
    await gone;
    clearTimeout(kill);
  }
}
