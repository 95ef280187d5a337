/** `svc guard --type stub` as its users run it: a process of its own. */
import { type ChildProcess, spawn } from "node:child_process";
import path from "node:path";
import { ROOT } from "../build.ts";
import { freePort } from "../stack.ts";
import { until } from "../wait.ts";

export class GuardProcess {
  readonly port: number;
  readonly #child: ChildProcess;
  readonly #exited: Promise<void>;

  private constructor(port: number, child: ChildProcess) {
    this.port = port;
    this.#child = child;
    this.#exited = new Promise((resolve) => child.on("exit", () => resolve()));
  }

  /** @param at port to listen on; default: any */
  static async start(at?: number): Promise<GuardProcess> {
    const port = at ?? (await freePort());
    const child = spawn(
      process.execPath,
      [path.join(ROOT, "dist/svc.js"), "guard", "--type", "stub"].concat([
        "--listen",
        `127.0.0.1:${port}`,
        "--log-level",
        "error",
      ]),
      { stdio: ["ignore", "ignore", "inherit"] },
    );
    const guard = new GuardProcess(port, child);
    try {
      await until(async () => (await fetch(`${guard.url}/healthz`)).status === 200, {
        what: "svc guard",
        timeoutMs: 30_000,
      });
    } catch (error) {
      await guard.end("SIGKILL");
      throw error;
    }
    return guard;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  signal(signal: "SIGSTOP" | "SIGCONT"): void {
    this.#child.kill(signal);
  }

  /** Resolves when the process has ended. */
  async end(signal: "SIGTERM" | "SIGKILL"): Promise<void> {
    this.#child.kill(signal);
    await this.#exited;
  }
}
