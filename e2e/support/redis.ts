/**
 * A real Redis for tests: started, killed, stopped and restarted empty; and a proxy that delays or
 * drops answers.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import net, { type AddressInfo } from "node:net";
import os from "node:os";
import path from "node:path";
import { Redis } from "ioredis";
import { until } from "./wait.ts";

export interface RedisServerOptions {
  /** One node of a cluster that has all slots. */
  readonly cluster?: boolean;
  readonly password?: string;
  /** Files in PEM; only TLS is then accepted. */
  readonly tls?: { readonly cert: string; readonly key: string; readonly ca: string };
  /** In the form of its configuration file: `["maxmemory", "1mb"]`. */
  readonly config?: readonly (readonly [string, string])[];
}

/** `REDIS_PATH`, or the binary in the path: `make debian` installs it. */
const BINARY = process.env["REDIS_PATH"] ?? "redis-server";
/** Ends when the process that started it ends for any reason. */
const SETPRIV = "/usr/bin/setpriv";
const ALL_SLOTS = ["0", "16383"] as const;
const HOST = "127.0.0.1";

export class RedisServer {
  readonly port: number;
  readonly #options: RedisServerOptions;
  readonly #dir = mkdtempSync(path.join(os.tmpdir(), "svc-redis-"));
  #child: ChildProcess | undefined;
  #output = "";
  #admin: Redis | undefined;

  private constructor(port: number, options: RedisServerOptions) {
    this.port = port;
    this.#options = options;
  }

  static async start(options: RedisServerOptions = {}): Promise<RedisServer> {
    // Another process may take the free port before Redis does.
    for (let attempt = 1; ; attempt++) {
      const server = new RedisServer(await freePort(), options);
      try {
        await server.restart();
        return server;
      } catch (error) {
        await server.stop();
        if (attempt === 3) throw error;
      }
    }
  }

  get url(): string {
    const { password, tls } = this.#options;
    return (
      `${tls === undefined ? "redis" : "rediss"}://` +
      `${password === undefined ? "" : `:${password}@`}${HOST}:${this.port}`
    );
  }

  /** Starts it, on the same port and empty: it keeps nothing on disk. */
  async restart(): Promise<void> {
    const { cluster, password, tls, config = [] } = this.#options;
    const args = [
      "--bind",
      HOST,
      "--dir",
      this.#dir,
      "--save",
      "",
      "--appendonly",
      "no",
      "--loglevel",
      "warning",
    ];
    if (tls === undefined) args.push("--port", String(this.port));
    else {
      args.push("--port", "0", "--tls-port", String(this.port), "--tls-auth-clients", "no");
      args.push(
        "--tls-cert-file",
        tls.cert,
        "--tls-key-file",
        tls.key,
        "--tls-ca-cert-file",
        tls.ca,
      );
    }
    if (password !== undefined) args.push("--requirepass", password);
    if (cluster === true)
      args.push("--cluster-enabled", "yes", "--cluster-config-file", `nodes-${Date.now()}.conf`);
    for (const [name, value] of config) args.push(`--${name}`, value);
    const [command, ...rest] = existsSync(SETPRIV)
      ? [SETPRIV, "--pdeathsig", "KILL", "--", BINARY, ...args]
      : [BINARY, ...args];
    const child = spawn(command, rest, { stdio: ["ignore", "pipe", "pipe"] });
    this.#child = child;
    this.#output = "";
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (part: Buffer) => (this.#output += part.toString()));
    let failure: Error | undefined;
    child.on("error", (error) => (failure = error));
    child.on("exit", () => (failure ??= new Error(`redis-server ended: ${this.#output}`)));
    this.#admin?.disconnect();
    this.#admin = undefined;
    await until(
      async () => {
        if (failure !== undefined) return true;
        return (await this.command("PING")) === "PONG";
      },
      { what: "redis-server to answer" },
    );
    if (failure !== undefined)
      throw new Error(`cannot start ${BINARY}: run make debian as root, or set REDIS_PATH`, {
        cause: failure,
      });
    if (cluster === true) await this.#takeAllSlots();
  }

  async #takeAllSlots(): Promise<void> {
    await this.command("CLUSTER", "ADDSLOTSRANGE", ...ALL_SLOTS);
    await until(
      async () => String(await this.command("CLUSTER", "INFO")).includes("cluster_state:ok"),
      { what: "the cluster to be ok" },
    );
  }

  /** Over a connection of its own. */
  async command(name: string, ...args: readonly string[]): Promise<unknown> {
    return this.#connection().call(name, ...args);
  }

  #connection(): Redis {
    if (this.#admin !== undefined) return this.#admin;
    const { password, tls } = this.#options;
    const admin = new Redis({
      host: HOST,
      port: this.port,
      enableReadyCheck: false,
      maxRetriesPerRequest: 0,
      retryStrategy: () => 20,
      ...(password !== undefined && { password }),
      // The test is about the gateway's verification, not this connection's.
      ...(tls !== undefined && { tls: { rejectUnauthorized: false } }),
    });
    admin.on("error", () => {});
    return (this.#admin = admin);
  }

  /** Sends SIGKILL, and waits for the end. */
  async kill(): Promise<void> {
    const child = this.#child;
    if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    child.kill("SIGKILL");
    await gone;
  }

  /** Sends SIGSTOP: connections stay open, nothing is answered. */
  pause(): void {
    this.#child?.kill("SIGSTOP");
  }

  resume(): void {
    this.#child?.kill("SIGCONT");
  }

  async stop(): Promise<void> {
    this.#admin?.disconnect();
    await this.kill();
    rmSync(this.#dir, { recursive: true, force: true });
  }
}

/** Proxy between a client and a port of this machine. */
export class TcpProxy {
  readonly #server: net.Server;
  readonly #sockets = new Set<net.Socket>();
  readonly #held: (() => void)[] = [];
  #holding = false;
  /** Delay of each part of an answer. */
  delayMs = 0;
  /** Whether requests are dropped. */
  swallows = false;
  /** Number of connections that were accepted. */
  accepted = 0;
  /** Number of dropped parts of requests. */
  swallowed = 0;

  private constructor(target: number) {
    this.#server = net.createServer((client) => {
      const upstream = net.connect(target, HOST);
      this.accepted += 1;
      for (const [socket, other] of [
        [client, upstream],
        [upstream, client],
      ] as const) {
        this.#sockets.add(socket);
        socket.setNoDelay(true);
        socket.on("error", () => {});
        socket.on("close", () => {
          this.#sockets.delete(socket);
          other.destroy();
        });
      }
      client.on("data", (part) => {
        if (this.swallows) this.swallowed += 1;
        else upstream.write(part);
      });
      upstream.on("data", (part) => this.#answer(() => client.write(part)));
    });
  }

  static async start(target: number): Promise<TcpProxy> {
    const proxy = new TcpProxy(target);
    await new Promise<void>((resolve) => proxy.#server.listen(0, HOST, resolve));
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Number of delayed parts of answers. */
  get held(): number {
    return this.#held.length;
  }

  /** Holds answers until {@link release}; requests pass. */
  hold(): void {
    this.#holding = true;
  }

  release(): void {
    this.#holding = false;
    for (const send of this.#held.splice(0)) send();
  }

  /** Breaks all connections; new ones are accepted. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async stop(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** In order: released parts first, then later ones. */
  #answer(send: () => void): void {
    if (this.#holding) this.#held.push(send);
    else if (this.delayMs > 0) setTimeout(send, this.delayMs);
    else send();
  }
}

async function freePort(): Promise<number> {
  const server = net.createServer();
  await new Promise<void>((resolve) => server.listen(0, HOST, resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
