/** The gateway's pod as processes of this machine: its supervisor, the service and Envoy. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { until } from "../../e2e/support/wait.ts";
import { childrenOf, cpuSecondsOf } from "./process-figures.ts";

const ROOT = path.resolve(import.meta.dirname, "../..");
const PORTS = { listen: 18_000, admin: 18_002 } as const;
/** Less CPU time than this, in seconds, in an interval is idleness. */
const IDLE = { cpuSeconds: 0.05, intervalMs: 2_000 } as const;

export interface GatewayProcessOptions {
  readonly kubeconfig: string;
  /** Folder for its configuration and its sockets. */
  readonly folder: string;
  /** Namespace of the installation. */
  readonly namespace: string;
  /** Watched namespaces. */
  readonly namespaces: readonly string[];
}

export class GatewayProcess {
  readonly #child: ChildProcess;
  #output = "";

  constructor({ kubeconfig, folder, namespace, namespaces }: GatewayProcessOptions) {
    const file = path.join(folder, "gateway.yaml");
    const address = "127.0.0.1";
    const config = {
      namespaces,
      listen: { address, port: PORTS.listen },
      external: null,
      admin: { address, port: PORTS.admin },
      audit: null,
      mock: true,
      drainDelaySeconds: 0,
      logLevel: "warn",
    };
    writeFileSync(file, JSON.stringify(config));
    this.#child = spawn(
      process.execPath,
      [path.join(ROOT, "dist/gateway-pod.js"), "--config", file],
      {
        env: {
          ...process.env,
          KUBECONFIG: kubeconfig,
          POD_NAME: "gateway-0",
          POD_NAMESPACE: namespace,
          SVC_RUN_DIR: path.join(folder, "run"),
        },
        stdio: ["ignore", "pipe", "pipe"],
      },
    );
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream?.setEncoding("utf8").on("data", (text: string) => (this.#output += text));
  }

  /** Process of the gateway's service. @throws Error if it does not run */
  get service(): number {
    return this.#process("dist/gateway.js");
  }

  /** Process of Envoy. @throws Error if it does not run */
  get envoy(): number {
    return this.#process("--config-path");
  }

  /** Resolves when the pod would be ready. */
  async ready(): Promise<void> {
    await until(
      async () => (await fetch(`http://127.0.0.1:${PORTS.admin}/readyz`)).status === 200,
      { what: `the gateway to be ready; it has printed:\n${this.#output}`, timeoutMs: 120_000 },
    );
  }

  /** Resolves when the service has nothing to do. */
  async idle(): Promise<void> {
    const pid = this.service;
    for (let before = -1; ;) {
      const used = cpuSecondsOf(pid);
      if (used - before < IDLE.cpuSeconds && before >= 0) return;
      before = used;
      await new Promise((resolve) => setTimeout(resolve, IDLE.intervalMs));
    }
  }

  #process(argument: string): number {
    const found = childrenOf(this.#child.pid).find((pid) =>
      readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(argument),
    );
    if (found === undefined)
      throw new Error(`there is no process with ${argument}:\n${this.#output}`);
    return found;
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, "exit");
    this.#child.kill("SIGTERM");
    await ended;
  }
}
