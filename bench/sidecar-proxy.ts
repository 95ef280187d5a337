/**
 * The sidecar as in production: its service, its Envoy, a policy that needs evaluation, and an
 * audit chain.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import http from "node:http";
import path from "node:path";
import { SIDECAR_NODE_ENV, SIDECAR_NODE_FLAGS } from "../src/binding/node-flags.ts";
import type { SidecarServiceOptionsInput } from "../src/binding/options.ts";
import { freePort, type Processes, until } from "./processes.ts";
import { REAL_TOKEN } from "./service.ts";
import { answers, type TlsTarget } from "./tls-target.ts";

const WORKLOAD = "default/bench";
const VARIABLE = "SVC_SECRET_GITHUB_TOKEN";

const GITHUB = {
  name: "github",
  type: "github",
  auth: { type: "token", env: { token: VARIABLE } },
  config: {},
  policy: {
    allow: ["pulls:*", "contents:read", "issues:read"],
    deny: ["pulls:write"],
    httpRules: [{ methods: ["GET", "POST"], paths: ["/repos/**", "/graphql"], action: "allow" }],
  },
  scope: { repositories: ["octo/*"] },
  audit: { enforcement: "enforce", logRequests: false },
};

export interface SidecarOptions {
  readonly root: string;
  readonly binary: string;
  readonly dir: string;
  readonly processes: Processes;
  readonly upstream: { readonly port: number; readonly dns: number };
  readonly authorityFile: string;
  readonly name?: string;
  /** The service's bundle. @defaultValue dist/sidecar.js */
  readonly script?: string;
  /** Node's own. */
  readonly nodeArgs?: readonly string[];
  /** CPU that both processes run on. @defaultValue measured */
  readonly place?: "measured" | "measuring";
  /** Folder of its audit chain. @defaultValue a separate one */
  readonly auditDir?: string;
}

export async function startSidecarProxy(options: SidecarOptions): Promise<TlsTarget> {
  const {
    root,
    binary,
    processes,
    upstream,
    authorityFile,
    name = "sidecar",
    script = path.join(root, "dist/sidecar.js"),
    nodeArgs = SIDECAR_NODE_FLAGS,
    place = "measured",
    auditDir = path.join(options.dir, name, "audit"),
  } = options;
  const dir = path.join(options.dir, name);
  const runDir = path.join(dir, "run");
  const log = path.join(dir, "sidecar.log");
  mkdirSync(runDir, { recursive: true, mode: 0o700 });
  writeFileSync(
    path.join(dir, "providers.json"),
    JSON.stringify({ version: 1, workload: WORKLOAD, bindings: [GITHUB] }),
  );
  const port = await freePort();
  const service: SidecarServiceOptionsInput = {
    workload: WORKLOAD,
    specFile: path.join(dir, "providers.json"),
    runDir,
    trustDir: path.join(dir, "trust"),
    listen: {
      http: { address: "127.0.0.1", port: await freePort() },
      https: { address: "127.0.0.1", port },
    },
    audit: {
      dir: auditDir,
      keyFile: path.join(dir, "audit.key"),
      writer: "sidecar",
      onFailure: "refuse",
      sync: "group",
    },
    dnsServers: [`127.0.0.1:${upstream.dns}`],
    upstreamPort: upstream.port,
    upstreamCaFile: authorityFile,
  };
  const node = processes.start({
    place,
    command: process.execPath,
    args: [...nodeArgs, script, JSON.stringify(service)],
    log,
    env: { PATH: process.env["PATH"], ...SIDECAR_NODE_ENV, [VARIABLE]: REAL_TOKEN },
  });
  const failed = (error: unknown): never => {
    throw new Error(`The sidecar did not start. It said:\n${readFileSync(log, "utf8")}`, {
      cause: error,
    });
  };
  await until(
    async () => ready(path.join(runDir, "sidecar.sock")),
    node,
    "the sidecar's service",
  ).catch(failed);
  const envoy = processes.start({
    place,
    command: binary,
    args: [
      "--config-path",
      path.join(runDir, "envoy.json"),
      "--disable-hot-restart",
      "--concurrency",
      "1",
      "--log-level",
      "warning",
    ],
    log,
  });
  const target = {
    name,
    port,
    caFile: path.join(dir, "trust/ca-bundle.crt"),
    tree: {
      pid: node.pid ?? 0,
      name: "Node",
      named: [],
      beside: [{ pid: envoy.pid ?? 0, name: "Envoy" }],
    },
  };
  await until(async () => answers(target), envoy, "the sidecar's Envoy").catch(failed);
  return target;
}

function ready(socketPath: string): Promise<true | undefined> {
  return new Promise((resolve, reject) => {
    http
      .get({ socketPath, path: "/readyz" }, (response) => {
        response.resume();
        resolve(response.statusCode === 200 ? true : undefined);
      })
      .on("error", reject);
  });
}
