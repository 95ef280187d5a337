/** An MCP server as a child process: JSON-RPC messages are the lines of its input and output. */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import type { Readable, Writable } from "node:stream";
import type { Clock } from "../../platform/clock.ts";
import type { Logger } from "../../platform/log.ts";
import type { Secret } from "../../platform/secret.ts";
import { oneLine } from "./one-line.ts";
import { StderrLog } from "./stderr-log.ts";

/** A program, and as whom it runs. */
export interface ServerProgram {
  /** Program and arguments; no shell reads them. */
  readonly command: readonly string[];
  /** Variables besides `PATH` and `HOME`. */
  readonly secrets: ReadonlyMap<string, Secret>;
  readonly path: string;
  readonly home: string;
  /** User that it runs as; undefined for this process's own. */
  readonly user: { readonly uid: number; readonly gid: number } | undefined;
}

export interface ChildServerOptions {
  readonly program: ServerProgram;
  readonly clock: Clock;
  readonly log: Logger;
  /** Maximum size of a message of the server in bytes. */
  readonly maxMessageBytes: number;
  /** Maximum number of bytes that wait for the server to read them. */
  readonly maxUnreadBytes: number;
  /** Receives each message, without the end of its line. */
  readonly onMessage: (line: Buffer) => void;
  /** Called once, when it has ended or could not be started. */
  readonly onEnd: () => void;
}

/** Time between the end of its input, SIGTERM and SIGKILL, in milliseconds. */
const GRACE_MS = 2_000;

/** See platform/supervised-process.ts. */
const SETPRIV = "/usr/bin/setpriv";

const LF = 0x0a;
const CR = 0x0d;

export class ChildServer {
  readonly #options: ChildServerOptions;
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #gone = Promise.withResolvers<void>();
  #parts: Buffer[] = [];
  #bytes = 0;
  #isOver = false;
  #isStopping = false;

  constructor(options: ChildServerOptions) {
    this.#options = options;
    const { program, clock, log } = options;
    const { command, secrets, path, home, user } = program;
    const [file = "", ...args] = [...privileges(user), ...command];
    this.#child = spawn(file, args, {
      cwd: "/",
      // Nothing else of this process's environment, which holds all secrets of the sidecar.
      env: {
        PATH: path,
        HOME: home,
        ...Object.fromEntries([...secrets].map(([name, secret]) => [name, secret.reveal()])),
      },
      stdio: ["pipe", "pipe", "pipe"],
      // A process group of its own, so that its children end with it.
      detached: true,
    });
    const stderr = new StderrLog(log, clock);
    this.#child.stdin.on("error", () => undefined);
    this.#child.stdout.on("data", (part: Buffer) => this.#read(part));
    this.#child.stdout.on("error", () => undefined);
    this.#child.stderr.on("data", (part: Buffer) => stderr.push(part));
    this.#child.stderr.on("error", () => undefined);
    this.#child.on("error", (error) => {
      log.error({ error: error.message }, "the MCP server's command cannot be started");
      this.#ended();
    });
    this.#child.on("exit", (code, signal) => {
      if (!this.#isStopping) log.warn({ code, signal }, "the MCP server has ended");
      this.#signal("SIGKILL");
      this.#ended();
    });
  }

  /** Its output, to be paused while nobody reads it. */
  get output(): Readable {
    return this.#child.stdout;
  }

  /** @returns false if the server has ended, or does not read what it was sent */
  send(json: string): boolean {
    const { stdin } = this.#child;
    if (this.#isOver || this.#isStopping || !stdin.writable) return false;
    if (stdin.writableLength > this.#options.maxUnreadBytes) return false;
    stdin.write(`${oneLine(json)}\n`);
    return true;
  }

  /** Ends it: its input, then SIGTERM, then SIGKILL. Resolves when it has ended. */
  stop(): Promise<void> {
    if (this.#isOver || this.#isStopping) return this.#gone.promise;
    this.#isStopping = true;
    const { clock } = this.#options;
    this.#child.stdin.end();
    this.#child.stdout.resume();
    this.#signal("SIGTERM");
    const cancel = clock.after(GRACE_MS, () => this.#signal("SIGKILL"));
    return this.#gone.promise.finally(cancel);
  }

  #read(part: Buffer): void {
    let rest = part;
    for (let end = rest.indexOf(LF); end >= 0; end = rest.indexOf(LF)) {
      this.#hold(rest.subarray(0, end));
      rest = rest.subarray(end + 1);
      const line = Buffer.concat(this.#parts);
      this.#parts = [];
      this.#bytes = 0;
      const text = line.at(-1) === CR ? line.subarray(0, -1) : line;
      if (text.length > 0 && !this.#isStopping) this.#options.onMessage(text);
    }
    if (rest.length > 0) this.#hold(rest);
  }

  /** Holds a part of a line until its end. */
  #hold(part: Buffer): void {
    if (this.#isStopping) return;
    this.#parts.push(part);
    this.#bytes += part.length;
    const { log, maxMessageBytes } = this.#options;
    if (this.#bytes <= maxMessageBytes) return;
    this.#parts = [];
    log.warn(`the MCP server sent a message of more than ${maxMessageBytes} bytes: it is ended`);
    void this.stop();
  }

  #ended(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#gone.resolve();
    this.#options.onEnd();
  }

  #signal(name: NodeJS.Signals): void {
    const { pid } = this.#child;
    if (pid === undefined) return;
    try {
      process.kill(-pid, name);
    } catch {
      // The group has ended.
    }
  }
}

/** It dies with this process, and cannot gain privileges. */
function privileges(user: ServerProgram["user"]): readonly string[] {
  if (!existsSync(SETPRIV)) {
    if (user === undefined) return [];
    throw new Error(`${SETPRIV} is missing, with which MCP servers run as another user`);
  }
  const own =
    user === undefined
      ? []
      : [
          ["--reuid", String(user.uid), "--regid", String(user.gid), "--clear-groups"],
          ["--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all"],
        ].flat();
  return [SETPRIV, ...own, "--no-new-privs", "--pdeathsig", "KILL", "--"];
}
