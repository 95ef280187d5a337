/**
 * The environment of `svc run`: a socket of `svc up`, a gateway, and a package with the tests'
 * sidecar.
 */
import { type ChildProcess, spawn } from "node:child_process";
import {
  chmodSync,
  closeSync,
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import http from "node:http";
import type { AddressInfo } from "node:net";
import os from "node:os";
import path from "node:path";

const root = path.resolve(import.meta.dirname, "../..");

export const HOSTS = ["api.example.com", "git.example.org"];
/** Secret that only the sidecar has. */
export const SECRET = "c2VjcmV0LW9mLXRoZS1zaWRlY2Fy";
export const TOKEN = "svcw_of-the-agent";

export interface Ran {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly pid: number;
}

export interface Started {
  readonly child: ChildProcess;
  /** Resolves when its standard output contains the text. */
  readonly said: (text: string) => Promise<void>;
  readonly ended: Promise<Ran>;
}

export interface StartOptions {
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
  readonly uid?: number;
  /** Descriptors open in the caller. */
  readonly files?: readonly { readonly as: number; readonly file: string }[];
}

export interface RunStack {
  readonly stateDir: string;
  /** Contains `secret.yaml`, which svc up declares private. */
  readonly resources: string;
  readonly gatewayPort: number;
  /** Answer of svc up for each agent: status and body. */
  answer: { status: number; body: unknown };
  readonly start: (
    args: readonly string[],
    command: readonly string[],
    options?: StartOptions,
  ) => Started;
  readonly run: (
    args: readonly string[],
    command: readonly string[],
    options?: StartOptions,
  ) => Promise<Ran>;
  /** Kills what still runs. */
  readonly killAll: () => Promise<void>;
  readonly stop: () => Promise<void>;
}

export async function startRunStack(): Promise<RunStack> {
  // Not in /tmp, which is hidden from the command; and readable for everybody.
  const dir = realpathSync(mkdtempSync("/var/lib/svc-test-"));
  chmodSync(dir, 0o755);
  const packageDir = path.join(dir, "package");
  mkdirSync(path.join(packageDir, "dist"), { recursive: true });
  copyFileSync(path.join(root, "dist/svc.js"), path.join(packageDir, "dist/svc.js"));
  cpSync(path.join(root, "dist/parts"), path.join(packageDir, "dist/parts"), { recursive: true });
  copyFileSync(path.join(root, "package.json"), path.join(packageDir, "package.json"));
  symlinkSync(path.join(root, "node_modules"), path.join(packageDir, "node_modules"));
  symlinkSync(path.join(root, ".venv"), path.join(packageDir, ".venv"));
  writeFileSync(
    path.join(packageDir, "dist/sidecar.js"),
    `await import(${JSON.stringify(path.join(root, "e2e/support/run-sidecar.ts"))});\n`,
  );
  const stateDir = path.join(dir, "state");
  const resources = path.join(dir, "resources");
  mkdirSync(stateDir, { mode: 0o755 });
  mkdirSync(resources, { mode: 0o755 });
  writeFileSync(path.join(resources, "secret.yaml"), SECRET, { mode: 0o644 });
  writeFileSync(path.join(stateDir, "workload.key"), SECRET, { mode: 0o644 });

  const gateway = http.createServer((request, response) =>
    response.end(`gateway ${request.url} ${request.headers.authorization}\n`),
  );
  await new Promise<void>((resolve) => gateway.listen(0, "127.0.0.1", resolve));
  const gatewayPort = (gateway.address() as AddressInfo).port;
  const control = http.createServer((request, response) => {
    const found = request.url === "/agents/default/coder/sidecar";
    const { status, body } = found
      ? stack.answer
      : { status: 404, body: { error: `there is no Agent at ${request.url}` } };
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => control.listen(path.join(stateDir, "svc.sock"), resolve));

  const running = new Map<ChildProcess, Promise<Ran>>();
  const start: RunStack["start"] = (
    args,
    command,
    { env = {}, cwd = "/", uid, files = [] } = {},
  ) => {
    const stdio: ("pipe" | "ignore" | number)[] = ["pipe", "pipe", "pipe"];
    for (const { as, file } of files) {
      while (stdio.length < as) stdio.push("ignore");
      stdio[as] = openSync(file, "r");
    }
    const child = spawn(
      process.execPath,
      [
        path.join(packageDir, "dist/svc.js"),
        "run",
        "--state-dir",
        stateDir,
        "--agent",
        "coder",
        ...args,
        "--",
        ...command,
      ],
      {
        cwd,
        stdio,
        env: { PATH: process.env["PATH"], HOME: os.homedir(), ...env },
        ...(uid === undefined ? {} : { uid }),
      },
    );
    for (const descriptor of stdio) if (typeof descriptor === "number") closeSync(descriptor);
    let [stdout, stderr] = ["", ""];
    child.stdout?.on("data", (data: Buffer) => (stdout += data.toString("utf8")));
    child.stderr?.on("data", (data: Buffer) => (stderr += data.toString("utf8")));
    const ended = new Promise<Ran>((resolve) =>
      child.once("close", (code, signal) =>
        resolve({ code, signal, stdout, stderr, pid: child.pid ?? 0 }),
      ),
    );
    running.set(child, ended);
    void ended.then(() => running.delete(child));
    const said = (text: string): Promise<void> =>
      new Promise((resolve, reject) => {
        const look = (): void => void (stdout.includes(text) && resolve());
        child.stdout?.on("data", look);
        look();
        void ended.then(() =>
          reject(new Error(`ended without saying ${text}: ${stdout}${stderr}`)),
        );
      });
    return { child, said, ended };
  };
  const stack: RunStack = {
    stateDir,
    resources,
    gatewayPort,
    answer: {
      status: 200,
      body: {
        specs: {
          hosts: HOSTS,
          bindings: [{ auth: { env: { token: "SVC_SECRET_GITHUB_TOKEN" } } }],
        },
        secrets: { SVC_SECRET_GITHUB_TOKEN: SECRET },
        gateway: { address: "127.0.0.1", port: gatewayPort },
        token: TOKEN,
        hosts: HOSTS,
        private: [resources],
      },
    },
    start,
    run: async (args, command, options) => {
      const started = start(args, command, options);
      started.child.stdin?.end();
      return started.ended;
    },
    killAll: async () => {
      for (const child of running.keys()) child.kill("SIGKILL");
      await Promise.all(running.values());
    },
    stop: async () => {
      control.closeAllConnections();
      gateway.closeAllConnections();
      await Promise.all(
        [control, gateway].map((server) => new Promise((resolve) => server.close(resolve))),
      );
      rmSync(dir, { recursive: true, force: true });
    },
  };
  return stack;
}
