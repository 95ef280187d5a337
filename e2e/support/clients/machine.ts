/**
 * A whole machine for agents: `svc up` with Providers, and `svc run` as users run it. Its
 * surroundings belong to the tests: in separate namespaces, the machine's DNS is a server that
 * resolves every name to {@link Outside}.
 */
import { spawn } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { ROOT } from "../build.ts";
import { Outside } from "../services.ts";
import { type Ran, Stack } from "../stack.ts";
import { type Network, startNetwork } from "./network.ts";

export interface MachineOptions {
  /** Names that exist in DNS; a leading `*.` matches any labels. */
  readonly hosts: readonly string[];
  /** Agents, Providers and Secrets. */
  readonly resources: readonly object[];
  /** Folders and files that agents find in {@link Machine.dir}, by their names there. */
  readonly shared?: Readonly<Record<string, string>>;
}

export interface RunOptions {
  readonly agent: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Shell's script that root runs first: its mounts last as long as the run. */
  readonly before?: string;
}

/** Arguments: a script, pairs of source and mount point, then `--` and the command. */
const MOUNT = `set -eu
before=$1
shift
while [ "$1" != -- ]; do
  mount --bind "$1" "$2"
  shift 2
done
shift
eval "$before"
exec "$@"`;

export class Machine {
  readonly outside: Outside;
  readonly stack: Stack;
  /** Folder of the files shared with agents, readable for all. */
  readonly dir: string;
  readonly #network: Network;
  readonly #mounts: readonly string[];

  private constructor(
    network: Network,
    outside: Outside,
    stack: Stack,
    dir: string,
    mounts: readonly string[],
  ) {
    this.#network = network;
    this.outside = outside;
    this.stack = stack;
    this.dir = dir;
    this.#mounts = mounts;
  }

  static async start({ hosts, resources, shared = {} }: MachineOptions): Promise<Machine> {
    if (process.getuid?.() !== 0) throw new Error("these tests make namespaces: run them as root");
    const network = await startNetwork();
    const outside = await Outside.start(hosts, network.address, network);
    const stack = await Stack.start({
      files: { "agents.yaml": resources.map((object) => JSON.stringify(object)).join("\n---\n") },
    });
    const dir = realpathSync(mkdtempSync("/var/lib/svc-test-"));
    chmodSync(dir, 0o755);
    outside.writeCa(path.join(stack.dir, "upstream-ca.pem"));
    const resolvConf = path.join(stack.dir, "resolv.conf");
    writeFileSync(resolvConf, `nameserver ${network.address}\n`);
    const mounts = [resolvConf, realpathSync("/etc/resolv.conf")];
    // Mounted, not referenced, because an agent may not read files in a home folder.
    for (const [name, source] of Object.entries({
      clients: path.join(ROOT, "e2e/support/clients"),
      node_modules: path.join(ROOT, "node_modules"),
      node: process.execPath,
      ...shared,
    })) {
      const target = path.join(dir, name);
      if (name === "node") writeFileSync(target, "");
      else mkdirSync(target);
      mounts.push(source, target);
    }
    return new Machine(network, outside, stack, dir, mounts);
  }

  /** A client's program. */
  client(name: string): string {
    return path.join(this.dir, "clients", name);
  }

  get node(): string {
    return path.join(this.dir, "node");
  }

  /** `svc run`, to its end. */
  async run(
    command: readonly string[],
    { agent, env = {}, before = "" }: RunOptions,
  ): Promise<Ran> {
    const svcRun = [
      [
        process.execPath,
        path.join(ROOT, "dist/svc.js"),
        "run",
        "--state-dir",
        this.stack.stateDir,
        "--agent",
        agent,
        "--workdir",
        this.dir,
        "--ca-file",
        path.join(this.stack.dir, "upstream-ca.pem"),
      ],
      ...Object.entries(env).map(([name, value]) => ["--env", `${name}=${value}`]),
      ["--", ...command],
    ].flat();
    const child = spawn(
      "nsenter",
      [
        `--net=${this.#network.netns}`,
        "unshare",
        "--mount",
        "--propagation",
        "private",
        "sh",
        "-c",
        MOUNT,
        "sh",
        before,
        ...this.#mounts,
        "--",
        ...svcRun,
      ],
      {
        stdio: ["ignore", "pipe", "pipe"],
        env: {
          PATH: process.env["PATH"],
          HOME: os.homedir(),
        },
      },
    );
    let [stdout, stderr] = ["", ""];
    child.stdout.on("data", (part: Buffer) => (stdout += part.toString()));
    child.stderr.on("data", (part: Buffer) => (stderr += part.toString()));
    const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
    return { code, stdout, stderr };
  }

  /** A shell's script, as the agent. */
  async sh(script: string, options: RunOptions): Promise<Ran> {
    return this.run(["sh", "-c", script], options);
  }

  async stop(): Promise<void> {
    await Promise.all([this.stack.stop(), this.outside.close(), this.#network.stop()]);
    rmSync(this.dir, { recursive: true, force: true });
  }
}
