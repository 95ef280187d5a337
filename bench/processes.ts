/**
 * Starts processes, each on its own CPU if possible, and ends all of them however the benchmark
 * ends.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { closeSync, existsSync, openSync, readFileSync } from "node:fs";
import net, { type AddressInfo } from "node:net";

/** The measured processes run on one CPU, the measuring ones on another. */
export type Place = "measured" | "measuring";

export interface StartOptions {
  readonly place: Place;
  readonly command: string;
  readonly args: readonly string[];
  /** File for its output; without it standard output is a pipe. */
  readonly log?: string;
  /** Lowest priority: uses only the CPU time that others leave. */
  readonly nice?: boolean;
  /** Replaces this process's own environment. */
  readonly env?: NodeJS.ProcessEnv;
}

/** Asks the kernel to end the child when this process dies, also by SIGKILL. */
const SETPRIV = "/usr/bin/setpriv";
const STOP_GRACE_MS = 5_000;

export class Processes {
  /** By place; undefined if this machine cannot pin. */
  readonly cpus: Readonly<Record<Place, number>> | undefined = pinnable();
  readonly #running = new Set<ChildProcess>();
  #stopping = false;

  constructor() {
    process.on("exit", () => {
      for (const child of this.#running) child.kill("SIGKILL");
    });
  }

  start({ place, command, args, log, env, nice = false }: StartOptions): ChildProcess {
    const prefix = [
      ...(existsSync(SETPRIV) ? [SETPRIV, "--pdeathsig", "TERM", "--"] : []),
      ...(this.cpus === undefined ? [] : ["taskset", "-c", String(this.cpus[place])]),
      ...(nice ? ["nice", "-n", "19"] : []),
    ];
    const [program = command, ...rest] = [...prefix, command, ...args];
    const output = log === undefined ? undefined : openSync(log, "a");
    // Detached, because otherwise Ctrl-C in a terminal would reach it before this process.
    const child = spawn(program, rest, {
      stdio: ["ignore", output ?? "pipe", output ?? "inherit"],
      detached: true,
      ...(env === undefined ? {} : { env }),
    });
    if (output !== undefined) closeSync(output);
    this.#running.add(child);
    child.once("exit", (code, signal) => {
      this.#running.delete(child);
      if (code !== 0 && !this.#stopping)
        process.stderr.write(`${command} ${args[0] ?? ""} ended with ${code ?? signal}\n`);
    });
    child.once("error", () => this.#running.delete(child));
    return child;
  }

  /** Runs it to its end, and returns what it printed. */
  async output(options: StartOptions): Promise<string> {
    const child = this.start(options);
    let text = "";
    child.stdout?.on("data", (part: Buffer) => (text += part.toString()));
    const code = await new Promise<number | null>((resolve, reject) => {
      child.once("close", resolve);
      child.once("error", reject);
    });
    if (code !== 0)
      throw new Error(`${options.args[0] ?? options.command} ended with ${code ?? "a signal"}`);
    return text;
  }

  /** Sends SIGTERM to all, and SIGKILL to those that do not end. */
  async stop(): Promise<void> {
    this.#stopping = true;
    const ending = [...this.#running].map(async (child) => {
      const gone = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGTERM");
      const kill = setTimeout(() => child.kill("SIGKILL"), STOP_GRACE_MS);
      await gone;
      clearTimeout(kill);
    });
    await Promise.all(ending);
  }
}

/** The first two CPUs that this process may use. */
function pinnable(): Record<Place, number> | undefined {
  if (!existsSync("/proc/self/status")) return undefined;
  const list =
    /^Cpus_allowed_list:\s+(\S+)$/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1] ?? "";
  const allowed = list.split(",").flatMap((range) => {
    const [first = 0, last = first] = range.split("-").map(Number);
    return Array.from({ length: last - first + 1 }, (_, index) => first + index);
  });
  const [measured, measuring] = allowed;
  if (measured === undefined || measuring === undefined) return undefined;
  const tried = spawnSync("taskset", ["-c", `${measured},${measuring}`, "true"]);
  return tried.status === 0 ? { measured, measuring } : undefined;
}

export async function freePort(): Promise<number> {
  const server = net.createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/**
 * Calls `attempt` until it returns a value; a child that ends meanwhile is an error that names its
 * log.
 */
export async function until<T>(
  attempt: () => Promise<T | undefined>,
  child: ChildProcess,
  what: string,
): Promise<T> {
  const deadline = performance.now() + 60_000;
  while (performance.now() < deadline) {
    if (child.exitCode !== null || child.signalCode !== null)
      throw new Error(`${what}: the process ended`);
    const result = await attempt().catch(() => undefined);
    if (result !== undefined) return result;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`${what}: not within a minute`);
}
