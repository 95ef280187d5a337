/**
 * Runs `svc up` as its users do: the built program as a child process, with a folder of resources.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import net, { type AddressInfo } from "node:net";
import os from "node:os";
import path from "node:path";
import { ROOT } from "./build.ts";
import { until } from "./wait.ts";

export interface StackOptions {
  /** File name to YAML. */
  readonly files: Readonly<Record<string, string>>;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly readyTimeoutMs?: number;
  /**
   * Key of workload tokens and of MCP sessions, 32 bytes, which replicas share. Default: its own.
   */
  readonly workloadKey?: Uint8Array;
}

export interface Status {
  readonly ready: boolean;
  readonly activeCalls: number;
  readonly policyVersion: string;
  readonly objects: readonly {
    readonly kind: string;
    readonly name: string;
    readonly ready: boolean;
    readonly reason: string;
  }[];
  readonly problems: readonly string[];
}

export interface Pids {
  readonly up: number;
  readonly gateway: number;
  readonly envoy: number;
}

export interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const SVC = path.join(ROOT, "dist/svc.js");

/** A whole `svc` command, to its end. */
export async function svc(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Ran> {
  const child = spawn(process.execPath, [SVC, ...args], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let stdout = "";
  let stderr = "";
  child.stdout.on("data", (part: Buffer) => (stdout += part.toString()));
  child.stderr.on("data", (part: Buffer) => (stderr += part.toString()));
  const code = await new Promise<number | null>((resolve) => child.on("close", resolve));
  return { code, stdout, stderr };
}

export async function freePort(): Promise<number> {
  const server = net.createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Number of characters of the output that an error quotes. */
const LAST_LOGS = 8_000;

export class Stack {
  readonly port: number;
  readonly externalPort: number;
  readonly dir: string;
  readonly child: ChildProcess;
  readonly exited: Promise<{
    readonly code: number | null;
    readonly signal: NodeJS.Signals | null;
  }>;
  #output = "";

  private constructor(port: number, externalPort: number, dir: string, child: ChildProcess) {
    this.port = port;
    this.externalPort = externalPort;
    this.dir = dir;
    this.child = child;
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on("data", (part: Buffer) => (this.#output += part.toString()));
    }
    this.exited = new Promise((resolve) =>
      child.on("exit", (code, signal) => resolve({ code, signal })),
    );
  }

  static async start({
    files,
    args = [],
    env = {},
    readyTimeoutMs = 90_000,
    workloadKey,
  }: StackOptions): Promise<Stack> {
    const dir = mkdtempSync(path.join(os.tmpdir(), "svc-e2e-"));
    mkdirSync(path.join(dir, "resources"));
    for (const [name, text] of Object.entries(files))
      writeFileSync(path.join(dir, "resources", name), text);
    if (workloadKey !== undefined) {
      mkdirSync(path.join(dir, "state"), { mode: 0o700 });
      writeFileSync(path.join(dir, "state/workload.key"), workloadKey, { mode: 0o600 });
    }
    const [port, externalPort] = [await freePort(), await freePort()];
    const child = spawn(
      process.execPath,
      [
        [
          SVC,
          "up",
          "--resources",
          path.join(dir, "resources"),
          "--state-dir",
          path.join(dir, "state"),
        ],
        ["--port", String(port), "--external-port", String(externalPort), ...args],
      ].flat(),
      { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"] },
    );
    const stack = new Stack(port, externalPort, dir, child);
    try {
      const serves = until(
        () => stack.#output.includes("LLM gateway  ") && stack.#output.includes("Metrics  "),
        {
          timeoutMs: readyTimeoutMs,
          what: "svc up to say that it serves",
        },
      );
      serves.catch(() => {});
      await Promise.race([
        serves,
        stack.exited.then(({ code }) => {
          throw new Error(`svc up ended with ${code ?? "a signal"}`);
        }),
      ]);
    } catch (error) {
      await stack.stop();
      throw new Error(`svc up did not start:\n${stack.logs}`, { cause: error });
    }
    return stack;
  }

  get baseUrl(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get externalUrl(): string {
    return `http://127.0.0.1:${this.externalPort}`;
  }

  /** All output so far. */
  get logs(): string {
    return this.#output;
  }

  /** Log lines of settled calls. */
  get calls(): readonly Record<string, unknown>[] {
    return this.#output
      .split("\n")
      .filter((line) => line.includes('"msg":"llm call"'))
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  }

  /** The log line of the call with this id, which must be the only one. */
  async callOf(id: string): Promise<Record<string, unknown>> {
    return until(() => this.calls.find((call) => call["call"] === id), {
      what: `the log line of call ${id}`,
    });
  }

  get stateDir(): string {
    return path.join(this.dir, "state");
  }

  get resourcesDir(): string {
    return path.join(this.dir, "resources");
  }

  /** Written like an editor does: completely, under another name first. */
  write(name: string, text: string): void {
    const temporary = path.join(this.dir, `${name}.tmp`);
    writeFileSync(temporary, text);
    renameSync(temporary, path.join(this.resourcesDir, name));
  }

  async token(agent: string): Promise<string> {
    return ((await this.#control(`/agents/default/${agent}/token`)) as { token: string }).token;
  }

  async status(): Promise<Status> {
    return (await this.#control("/status")) as Status;
  }

  async metrics(): Promise<Metrics> {
    const response = await fetch(`${this.baseUrl}/metrics`);
    if (response.status !== 200) throw new Error(`/metrics answered ${response.status}`);
    return new Metrics(await response.text());
  }

  /** Children by their command lines. */
  pids(): Pids {
    const up = this.child.pid ?? 0;
    const children = readFileSync(`/proc/${up}/task/${up}/children`, "utf8")
      .trim()
      .split(" ")
      .map(Number);
    const find = (part: string): number =>
      children.find((pid) => readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(part)) ?? 0;
    return { up, gateway: find("dist/gateway.js"), envoy: find("--config-path") };
  }

  /** Both children run and the gateway serves. */
  async settled(): Promise<void> {
    await until(
      async () => {
        const { gateway, envoy } = this.pids();
        if (gateway === 0 || envoy === 0) return false;
        const response = await fetch(`${this.baseUrl}/readyz`);
        await response.arrayBuffer();
        return response.status === 200;
      },
      { what: "the gateway to be ready again" },
    ).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${this.logs.slice(-LAST_LOGS)}`, { cause: error });
    });
  }

  async idle(): Promise<void> {
    await until(async () => (await this.status()).activeCalls === 0, {
      what: "no call to be under way",
    });
  }

  /** Ends it in good order; its files stay. */
  async shutDown(): Promise<void> {
    if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill("SIGTERM");
    const timer = setTimeout(() => this.child.kill("SIGKILL"), 20_000);
    await this.exited;
    clearTimeout(timer);
  }

  async stop(): Promise<void> {
    await this.shutDown();
    rmSync(this.dir, { recursive: true, force: true });
  }

  async #control(url: string): Promise<unknown> {
    const socketPath = path.join(this.stateDir, "svc.sock");
    const { status, body } = await new Promise<{ status: number; body: string }>(
      (resolve, reject) => {
        const request = http.request({ socketPath, path: url }, (response) => {
          let text = "";
          response.on("data", (part: Buffer) => (text += part.toString()));
          response.on("end", () => resolve({ status: response.statusCode ?? 0, body: text }));
        });
        request.on("error", reject);
        request.end();
      },
    );
    if (status !== 200) throw new Error(`${url}: ${status} ${body}`);
    return JSON.parse(body);
  }
}

/** Prometheus' text, by name and labels. */
export class Metrics {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  /** Sum of the samples that have these labels. */
  sum(name: string, labels: Readonly<Record<string, string>> = {}): number {
    let sum = 0;
    for (const line of this.text.split("\n")) {
      if (!line.startsWith(`${name}{`) && !line.startsWith(`${name} `)) continue;
      if (!Object.entries(labels).every(([key, value]) => line.includes(`${key}="${value}"`)))
        continue;
      sum += Number(line.slice(line.lastIndexOf(" ") + 1));
    }
    return sum;
  }
}

/** Resident memory of a process, MiB. */
export function rssMiB(pid: number): number {
  const kib = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Math.round(Number(kib ?? 0) / 1024);
}

export function alive(pid: number): boolean {
  try {
    return !readFileSync(`/proc/${pid}/stat`, "utf8").includes(") Z ");
  } catch {
    return false;
  }
}
