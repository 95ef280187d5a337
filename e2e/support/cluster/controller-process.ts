/** The controller as a process of this machine. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { until } from "../wait.ts";

const ROOT = path.resolve(import.meta.dirname, "../../..");

export interface ControllerOptions {
  readonly kubeconfig: string;
  /** Folder for its configuration. */
  readonly folder: string;
  /** Name of its pod: its identity in the election of a leader. */
  readonly pod: string;
  /** Namespace of the installation, where the Service svc-gateway is. */
  readonly namespace: string;
  /** Watched namespaces. */
  readonly namespaces: readonly string[];
  /** Whether it is started again when it ends by itself, as a kubelet does. */
  readonly restarts?: boolean;
  /** Further settings of its configuration. */
  readonly settings?: object;
}

export class ControllerProcess {
  readonly #options: ControllerOptions;
  #child: ChildProcess | undefined;
  #port = 0;
  #stopping = false;
  /** What it has printed, of all its runs. */
  output = "";

  constructor(options: ControllerOptions) {
    this.#options = options;
  }

  /** Begins another run. */
  async start(): Promise<this> {
    const { kubeconfig, folder, pod, namespace, namespaces, settings } = this.#options;
    this.#stopping = false;
    this.#port = await freePort();
    const file = path.join(folder, `${pod}.yaml`);
    const config = {
      namespaces,
      leaderElection: { leaseSeconds: 3, renewSeconds: 2, retrySeconds: 0.3 },
      images: { proxy: "localhost/none:dev", svc: "localhost/none:dev", pullPolicy: "Never" },
      gateway: { host: `svc-gateway.${namespace}.svc.cluster.local` },
      dns: { servers: ["10.0.0.10"] },
      http: { address: "127.0.0.1", port: this.#port },
      ...settings,
    };
    writeFileSync(file, JSON.stringify(config));
    const child = spawn(
      process.execPath,
      [path.join(ROOT, "dist/controller.js"), "--config", file],
      {
        env: { ...process.env, KUBECONFIG: kubeconfig, POD_NAME: pod, POD_NAMESPACE: namespace },
        stdio: ["ignore", "pipe", "pipe"],
      },
    );
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding("utf8").on("data", (text: string) => (this.output += text));
    this.#child = child;
    child.on("exit", (code, signal) => {
      this.output += `(it has ended: ${signal ?? `code ${code}`})\n`;
      if (
        this.#options.restarts === true &&
        code !== null &&
        this.#child === child &&
        !this.#stopping
      )
        void this.start();
    });
    return this;
  }

  get isRunning(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.pid !== undefined;
  }

  get pid(): number | undefined {
    return this.#child?.signalCode === null ? this.#child.pid : undefined;
  }

  /** Resolves when its copies of the cluster are complete. */
  async ready(): Promise<void> {
    await until(async () => (await this.#get("/readyz")).status === 200, {
      what: `the controller to be ready; it has printed:\n${this.output}`,
    });
  }

  async metrics(): Promise<string> {
    return (await this.#get("/metrics")).text();
  }

  /** Number of reconciliations of its present run; 0 while it does not answer. */
  async reconciled(): Promise<number> {
    const text = await this.metrics().catch(() => "");
    const counts = text.matchAll(/^svc_controller_reconcile_seconds_count\{.*\} (\d+)$/gm);
    return [...counts].reduce((sum, [, count]) => sum + Number(count), 0);
  }

  /** @returns the exit code; undefined if the signal ended it */
  async stop(signal: "SIGTERM" | "SIGKILL" = "SIGTERM"): Promise<number | undefined> {
    this.#stopping = true;
    const child = this.#child;
    if (child === undefined || !this.isRunning) return child?.exitCode ?? undefined;
    const ended = once(child, "exit");
    child.kill(signal);
    const [code] = (await ended) as [number | null];
    return code ?? undefined;
  }

  async #get(at: string): Promise<Response> {
    return fetch(`http://127.0.0.1:${this.#port}${at}`);
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
