/**
 * The sidecar by itself, as a pod runs it: its service and its Envoy, in this machine's own network
 * namespace.
 */
import { type ChildProcess, spawn } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { X509Certificate } from "node:crypto";
import http from "node:http";
import os from "node:os";
import path from "node:path";
import { SIDECAR_NODE_ENV, SIDECAR_NODE_FLAGS } from "../../src/binding/node-flags.ts";
import type { SidecarServiceOptionsInput } from "../../src/binding/options.ts";
import type { BindingSpecs } from "../../src/resources/binding-spec.ts";
import { ROOT } from "./build.ts";
import type { Outside } from "./services.ts";
import { freePort } from "./stack.ts";
import { until } from "./wait.ts";

export interface SidecarOptions {
  readonly outside: Outside;
  readonly bindings: readonly unknown[];
  readonly secrets: Readonly<Record<string, string>>;
  readonly options?: Partial<SidecarServiceOptionsInput>;
}

export const WORKLOAD = "default/tester";

export class Sidecar {
  readonly dir: string;
  readonly httpPort: number;
  readonly httpsPort: number;
  readonly dnsPort: number;
  readonly #children: ChildProcess[] = [];
  #output = "";

  private constructor(
    dir: string,
    ports: Readonly<Record<"httpPort" | "httpsPort" | "dnsPort", number>>,
  ) {
    this.dir = dir;
    this.httpPort = ports.httpPort;
    this.httpsPort = ports.httpsPort;
    this.dnsPort = ports.dnsPort;
  }

  static async start({
    outside,
    bindings,
    secrets,
    options = {},
  }: SidecarOptions): Promise<Sidecar> {
    const dir = mkdtempSync(path.join(os.tmpdir(), "svc-sidecar-"));
    const [httpPort, httpsPort, dnsPort] = [await freePort(), await freePort(), await freePort()];
    const sidecar = new Sidecar(dir, { httpPort, httpsPort, dnsPort });
    sidecar.writeSpecs(bindings);
    outside.writeCa(path.join(dir, "upstream-ca.pem"));
    const run: SidecarServiceOptionsInput = {
      workload: WORKLOAD,
      specFile: path.join(dir, "providers.json"),
      pollMs: 100,
      runDir: path.join(dir, "run"),
      trustDir: path.join(dir, "trust"),
      listen: {
        http: { address: "127.0.0.1", port: sidecar.httpPort },
        https: { address: "127.0.0.1", port: sidecar.httpsPort },
        dns: { address: "127.0.0.1", port: sidecar.dnsPort },
      },
      audit: {
        dir: path.join(dir, "audit"),
        keyFile: path.join(dir, "audit.key"),
        writer: "sidecar",
        onFailure: "refuse",
        sync: "group",
      },
      dnsServers: [outside.dnsServer],
      upstreamPort: outside.port,
      upstreamCaFile: path.join(dir, "upstream-ca.pem"),
      ...options,
    };
    mkdirSync(run.runDir, { mode: 0o700 });
    sidecar.#spawn(
      process.execPath,
      [...SIDECAR_NODE_FLAGS, path.join(ROOT, "dist/sidecar.js"), JSON.stringify(run)],
      { PATH: process.env["PATH"] ?? "", ...SIDECAR_NODE_ENV, ...secrets },
    );
    await until(
      async () => (await sidecar.admin("/readyz").catch(() => ({ status: 0 }))).status === 200,
      { what: "the sidecar service" },
    ).catch((error: unknown) => {
      throw new Error(`the sidecar did not start: ${sidecar.logs}`, { cause: error });
    });
    const envoy = process.env["ENVOY_PATH"] ?? path.join(ROOT, ".venv/bin/envoy");
    sidecar.#spawn(
      envoy,
      [
        "--config-path",
        path.join(run.runDir, "envoy.json"),
        "--disable-hot-restart",
        "--concurrency",
        "1",
        "--log-level",
        process.env["SVC_E2E_ENVOY_LOG"] ?? "warning",
      ],
      { PATH: process.env["PATH"] ?? "" },
    );
    await until(
      async () =>
        (await sidecar.admin("/ready", "envoy-admin.sock").catch(() => ({ status: 0 }))).status ===
        200,
      { what: "the sidecar's Envoy" },
    ).catch((error: unknown) => {
      throw new Error(`Envoy did not start: ${sidecar.logs}`, { cause: error });
    });
    return sidecar;
  }

  #spawn(command: string, args: readonly string[], env: NodeJS.ProcessEnv): void {
    const [program, ...rest] = existsSync("/usr/bin/setpriv")
      ? ["/usr/bin/setpriv", "--pdeathsig", "KILL", "--", command, ...args]
      : [command, ...args];
    const child = spawn(program, rest, { env, stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of [child.stdout, child.stderr])
      stream?.on("data", (part: Buffer) => (this.#output += part.toString()));
    this.#children.push(child);
  }

  get logs(): string {
    return this.#output;
  }

  /** Trusted by an agent's clients. */
  get bundle(): string {
    return readFileSync(path.join(this.dir, "trust/ca-bundle.crt"), "utf8");
  }

  /** Fingerprints of the sidecar's own authorities, oldest first. */
  get authorities(): readonly string[] {
    const blocks =
      readFileSync(path.join(this.dir, "trust/ca.crt"), "utf8").match(
        /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g,
      ) ?? [];
    return blocks.map((block) => new X509Certificate(block).fingerprint256);
  }

  get pids(): { readonly service: number; readonly envoy: number } {
    return { service: this.#children[0]?.pid ?? 0, envoy: this.#children[1]?.pid ?? 0 };
  }

  /** Written like the kubelet does: completely, under another name first. */
  writeSpecs(bindings: readonly unknown[]): void {
    const specs = { version: 1, workload: WORKLOAD, bindings } as BindingSpecs;
    this.writeSpecsText(JSON.stringify(specs));
  }

  writeSpecsText(text: string): void {
    const temporary = path.join(this.dir, "providers.tmp");
    writeFileSync(temporary, text);
    renameSync(temporary, path.join(this.dir, "providers.json"));
  }

  /** Records of the audit chain so far. */
  audit(): { readonly type: string; readonly fields: Record<string, unknown> }[] {
    const file = path.join(this.dir, "audit/sidecar/000001.jsonl");
    if (!existsSync(file)) return [];
    return readFileSync(file, "utf8")
      .split("\n")
      .filter((line) => line.endsWith("}"))
      .map((line) => JSON.parse(line) as { type: string; fields: Record<string, unknown> });
  }

  async admin(
    url: string,
    socket = "sidecar.sock",
  ): Promise<{ readonly status: number; readonly body: string }> {
    return new Promise((resolve, reject) => {
      const request = http.request(
        { socketPath: path.join(this.dir, "run", socket), path: url },
        (response) => {
          let body = "";
          response.on("data", (part: Buffer) => (body += part.toString()));
          response.on("end", () => resolve({ status: response.statusCode ?? 0, body }));
        },
      );
      request.on("error", reject);
      request.end();
    });
  }

  async stop(): Promise<void> {
    for (const child of this.#children) child.kill("SIGTERM");
    const ended = async (child: ChildProcess): Promise<void> => {
      if (child.exitCode === null && child.signalCode === null)
        await new Promise((resolve) => child.once("exit", resolve));
    };
    await Promise.all(this.#children.map(ended));
    rmSync(this.dir, { recursive: true, force: true });
  }
}
