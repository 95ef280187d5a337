/**
 * `svc up`: everything on one machine. This process supervises Envoy, the gateway service and, if
 * there is one, the guard service, and serves the mock upstream. When it is stopped, it lets
 * requests under way finish; when it is killed, none of the processes survives.
 */
import { readFileSync, rmSync, statSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import type { SpaceOptions } from "../audit/writer/volume.ts";
import type { GatewayOptionsInput } from "../gateway/options.ts";
import type { GatewayStatus } from "../gateway/status.ts";
import { parseScript, type Script, ScriptError } from "../mock/script.ts";
import { startMock } from "../mock/server.ts";
import type { Logger } from "../platform/log.ts";
import { SupervisedProcess } from "../platform/supervised-process.ts";
import { unixRequest } from "../platform/unix-http.ts";
import { drain } from "./drain.ts";
import { caBundleOf, findCaBundle } from "../host/ca-bundle.ts";
import { gatewayEnvoy } from "./envoy-process.ts";
import { StartError } from "../host/errors.ts";
import { envoyOfUp, findEnvoy } from "../host/find-envoy.ts";
import { assertGuardOptions, type GuardOptions, guardProcess } from "./guard-process.ts";
import { assertPortFree } from "./ports.ts";
import { makeRunDir, prepareState, type StatePaths, statePaths } from "../host/state.ts";

export interface UpOptions {
  readonly resources: string;
  readonly address: string;
  readonly port: number;
  /** Port of the external gateway; undefined for none. */
  readonly externalPort: number | undefined;
  /** CIDR blocks of proxies whose `X-Forwarded-For` is trusted. */
  readonly trustedProxies: readonly string[];
  /** Origins of web pages that may call MCP servers. */
  readonly mcpAllowedOrigins: readonly string[];
  /** Hosts under which the MCP gateway is published; empty for any. */
  readonly mcpAllowedHosts: readonly string[];
  /** Counters in Redis; undefined for the environment's setting, or this machine's memory. */
  readonly redisUrl: string | undefined;
  /** Longest wait of a request for Redis, in milliseconds. */
  readonly redisTimeoutMs: number;
  /** Time for which a lease in Redis survives a gateway that died, in milliseconds. */
  readonly leaseMs: number;
  /** Bounds of the request bodies held at once, in bytes. */
  readonly bytesInFlight: { readonly total: number; readonly perCaller: number };
  /** Maximum pause of an upload in milliseconds. */
  readonly uploadIdleMs: number;
  /** undefined for none. */
  readonly audit: AuditOptions | undefined;
  readonly stateDir: string | undefined;
  /** The Envoy binary; undefined to search for it. */
  readonly envoy: string | undefined;
  readonly pricesFile: string | undefined;
  /** The guard service that is started; undefined for none. */
  readonly guard: GuardOptions | undefined;
  /** Base URL of a guard service that runs elsewhere; undefined for none. */
  readonly guardEndpoint: string | undefined;
  /** Port of the mock model; undefined for any. */
  readonly mockPort: number | undefined;
  /** File with the mock model's script; undefined to echo only. */
  readonly mockScript: string | undefined;
  /** Heap size at which Envoy accepts no more requests, in bytes. */
  readonly envoyHeapBytes: number;
  readonly concurrency: number | undefined;
  readonly logLevel: string;
  /** Time that requests under way have to finish after SIGTERM, in milliseconds. */
  readonly drainMs: number;
}

export interface AuditOptions {
  /** undefined for the state folder. */
  readonly dir: string | undefined;
  readonly onFailure: "refuse" | "continue";
  readonly sync: "group" | "none";
  readonly space: SpaceOptions;
}

/** Name of the gateway's audit chain in its folder. */
const AUDIT_WRITER = "gateway";

export interface UpEnvironment {
  /** The package's root, which contains `envoy/`, `dist/` and `src/gen/`. */
  readonly root: string;
  readonly env: NodeJS.ProcessEnv;
  readonly log: Logger;
}

export interface Up {
  readonly baseUrl: string;
  /** URL of the external gateway; undefined if there is none. */
  readonly externalUrl: string | undefined;
  readonly state: StatePaths;
  status(): Promise<GatewayStatus>;
  token(namespace: string, name: string): Promise<string>;
  /** Resolves when the gateway serves; rejects with a {@link StartError} if it cannot. */
  ready(): Promise<void>;
  stop(): Promise<void>;
}

/** Time from start to serving, with thousands of resources on a slow machine. */
const READY_TIMEOUT_MS = 60_000;
const STOP_GRACE_MS = 3_000;

/** @throws StartError */
export async function startUp(options: UpOptions, { root, env, log }: UpEnvironment): Promise<Up> {
  const resources = assertFolder(options.resources);
  const script = readScript(options.mockScript);
  if (options.guard !== undefined) assertGuardOptions(options.guard);
  const envoy = findEnvoy(envoyOfUp(options.envoy, env, root));
  await assertPortFree(options.address, options.port, "--port");
  if (options.externalPort !== undefined)
    await assertPortFree(options.address, options.externalPort, "--external-port");
  if (options.mockPort !== undefined)
    await assertPortFree("127.0.0.1", options.mockPort, "--mock-port");
  const state = statePaths(options.stateDir, env);
  prepareState(state);
  await assertNotRunning(state);
  makeRunDir(state);
  try {
    return await start(options, { root, env, log }, { resources, script, envoy, state });
  } catch (error) {
    rmSync(state.runDir, { recursive: true, force: true });
    throw error;
  }
}

interface Found {
  readonly resources: string;
  readonly script: Script | undefined;
  readonly envoy: string;
  readonly state: StatePaths;
}

async function start(
  options: UpOptions,
  { root, env, log }: UpEnvironment,
  found: Found,
): Promise<Up> {
  const { resources, script, envoy, state } = found;
  const { runDir } = state;
  const caFile = findCaBundle(caBundleOf(env), runDir);
  const mock = await startMock({ port: options.mockPort, script });
  const guard =
    options.guard === undefined ? undefined : await guardProcess(options.guard, { root, env, log });
  const guardEndpoint = guard?.endpoint ?? options.guardEndpoint;

  const gatewayOptions: GatewayOptionsInput = {
    resources,
    runDir,
    workloadKeyFile: state.workloadKeyFile,
    controlSocket: state.controlSocket,
    listen: { address: options.address, port: options.port },
    ...(options.externalPort === undefined
      ? {}
      : { external: { address: options.address, port: options.externalPort } }),
    trustedProxies: [...options.trustedProxies],
    mcpAllowedOrigins: [...options.mcpAllowedOrigins],
    ...(options.mcpAllowedHosts.length === 0
      ? {}
      : { mcpAllowedHosts: [...options.mcpAllowedHosts] }),
    redisTimeoutMs: options.redisTimeoutMs,
    leaseMs: options.leaseMs,
    bytesInFlight: options.bytesInFlight,
    uploadIdleMs: options.uploadIdleMs,
    ...(options.audit === undefined ? {} : { audit: auditOptions(options.audit, state) }),
    environment: "stdin",
    caFile,
    descriptorSet: path.join(root, "src/gen/envoy.binpb"),
    mock: { host: mock.host, port: mock.port },
    ...(guardEndpoint === undefined ? {} : { guardEndpoint }),
    logLevel: options.logLevel,
    ...(options.pricesFile === undefined ? {} : { pricesFile: path.resolve(options.pricesFile) }),
  };
  let lastWords = "";
  const gateway = new SupervisedProcess({
    name: "gateway",
    command: process.execPath,
    args: [
      "--enable-source-maps",
      path.join(root, "dist/gateway.js"),
      JSON.stringify(gatewayOptions),
    ],
    // Not an argument, because it contains passwords and anybody can read arguments. Not its
    // environment, because variables for Node.js or the loader would take effect with this
    // process's rights.
    env: {},
    input: JSON.stringify(
      options.redisUrl === undefined ? env : { ...env, SVC_REDIS_URL: options.redisUrl },
    ),
    log,
  });
  const proxy = gatewayEnvoy({
    root,
    envoy,
    runDir,
    nodeId: `svc-${os.hostname()}-${process.pid}`,
    heapBytes: options.envoyHeapBytes,
    concurrency: options.concurrency ?? os.availableParallelism(),
    drainMs: options.drainMs,
    log,
    onError: (line) => {
      lastWords = line;
    },
  });
  guard?.process.start();
  gateway.start();
  proxy.start();

  const control = async (url: string): Promise<unknown> => {
    const response = await unixRequest(state.controlSocket, url);
    const body = JSON.parse(response.body) as { error?: string };
    if (response.status !== 200) throw new Error(body.error ?? `status ${response.status}`);
    return body;
  };
  const status = async (): Promise<GatewayStatus> => (await control("/status")) as GatewayStatus;
  const close = async (): Promise<void> => {
    await Promise.all([proxy.stop(STOP_GRACE_MS), gateway.stop(STOP_GRACE_MS)]);
    await guard?.process.stop(STOP_GRACE_MS);
    await mock.close();
    rmSync(runDir, { recursive: true, force: true });
  };

  return {
    baseUrl: `http://${reachable(options.address)}:${options.port}`,
    externalUrl:
      options.externalPort === undefined
        ? undefined
        : `http://${reachable(options.address)}:${options.externalPort}`,
    state,
    status,
    token: async (namespace, name) =>
      ((await control(`/agents/${namespace}/${name}/token`)) as { token: string }).token,
    ready: async () => {
      const deadline = performance.now() + READY_TIMEOUT_MS;
      while (performance.now() < deadline) {
        const known = await status().catch(() => undefined);
        if (known?.ready === true) return;
        if (gateway.restarts >= 3 || proxy.restarts >= 3) break;
        await new Promise((resolve) => setTimeout(resolve, 25));
      }
      await close();
      throw new StartError(
        "The gateway did not become ready. " +
          (lastWords === "" ? "See its log for the reason." : `Envoy said: ${lastWords}`),
      );
    },
    stop: async () => {
      const activeCalls = async (): Promise<number> => (await status()).activeCalls;
      await drain({ runDir, drainMs: options.drainMs, activeCalls, log });
      await close();
    },
  };
}

function auditOptions(
  { dir, onFailure, sync, space }: AuditOptions,
  state: StatePaths,
): NonNullable<GatewayOptionsInput["audit"]> {
  return {
    dir: dir === undefined ? state.auditDir : path.resolve(dir),
    keyFile: state.auditKeyFile,
    writer: AUDIT_WRITER,
    onFailure,
    sync,
    space,
  };
}

/** Returns an address at which a listening address can be called. */
function reachable(address: string): string {
  if (address === "0.0.0.0") return "127.0.0.1";
  if (address === "::") return "[::1]";
  return address.includes(":") ? `[${address}]` : address;
}

/** @throws StartError with the place of the first mistake */
function readScript(file: string | undefined): Script | undefined {
  if (file === undefined) return undefined;
  try {
    return parseScript(readFileSync(file, "utf8"), file);
  } catch (error) {
    if (error instanceof ScriptError) throw new StartError(`--mock-script: ${error.message}`);
    throw new StartError(
      `--mock-script: ${file} cannot be read ` +
        `(${(error as NodeJS.ErrnoException).code ?? "unknown error"}).`,
    );
  }
}

function assertFolder(dir: string): string {
  const resolved = path.resolve(dir);
  const isFolder = statSync(resolved, { throwIfNoEntry: false })?.isDirectory() ?? false;
  if (!isFolder)
    throw new StartError(
      `${dir} is not a folder. Name one with your resources' YAML: --resources DIR.`,
    );
  return resolved;
}

async function assertNotRunning(state: StatePaths): Promise<void> {
  const answer = await unixRequest(state.controlSocket, "/status").catch(() => undefined);
  if (answer !== undefined) {
    throw new StartError(
      `Another svc up runs with the state folder ${state.dir}. Stop it, or choose another ` +
        "with --state-dir.",
    );
  }
}
