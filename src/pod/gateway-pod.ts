/**
 * The gateway's pod: supervises Envoy and the gateway service, tells the kubelet of their state,
 * and leaves without cutting a call. At SIGTERM the pod first becomes unready and goes on serving,
 * until its removal from the Service was seen; then Envoy accepts nothing more, and the calls under
 * way have their time.
 */
import { mkdirSync, rmSync } from "node:fs";
import http from "node:http";
import os from "node:os";
import path from "node:path";
import type { GatewayOptionsInput } from "../gateway/options.ts";
import type { GatewayStatus } from "../gateway/status.ts";
import { caBundleOf, findCaBundle, joinBundles } from "../host/ca-bundle.ts";
import { envoyOfUp, findEnvoy } from "../host/find-envoy.ts";
import { startMock } from "../mock/server.ts";
import type { Logger } from "../platform/log.ts";
import { SupervisedProcess } from "../platform/supervised-process.ts";
import { unixRequest } from "../platform/unix-http.ts";
import { announceLeaving, drain } from "../up/drain.ts";
import { gatewayEnvoy } from "../up/envoy-process.ts";
import { ConfigFileError } from "./config-file.ts";
import type { GatewayConfig } from "./gateway-config.ts";

export interface GatewayPodEnvironment {
  /** The package's root. */
  readonly root: string;
  readonly env: NodeJS.ProcessEnv;
  readonly log: Logger;
  /** Folder of sockets, on an emptyDir. */
  readonly runDir: string;
}

export interface GatewayPod {
  /** Leaves: resolves when everything has ended. */
  stop(): Promise<void>;
}

const STOP_GRACE_MS = 3_000;

/** @param runDir the pod's folder of sockets */
export const controlSocketOf = (runDir: string): string => path.join(runDir, "svc.sock");

/** Resolves when its processes are started. @throws ConfigFileError, StartError */
export async function startGatewayPod(
  config: GatewayConfig,
  { root, env, log, runDir }: GatewayPodEnvironment,
): Promise<GatewayPod> {
  const pod = required(env, "POD_NAME");
  const ownNamespace = required(env, "POD_NAMESPACE");
  const envoy = findEnvoy(envoyOfUp(undefined, env, root));
  rmSync(runDir, { recursive: true, force: true });
  mkdirSync(runDir, { recursive: true, mode: 0o700 });
  const controlSocket = controlSocketOf(runDir);
  const mock = config.mock ? await startMock() : undefined;
  const options: GatewayOptionsInput = {
    kubernetes: {
      namespaces: config.namespaces,
      ownNamespace,
      pod,
      workloadKeySecret: config.workloadKeySecret,
      statusWriter: config.statusWriter,
    },
    runDir,
    controlSocket,
    listen: config.listen,
    ...(config.external === null ? {} : { external: config.external }),
    trustedProxies: config.trustedProxies,
    mcpAllowedOrigins: config.mcp.allowedOrigins,
    ...(config.mcp.allowedHosts.length === 0 ? {} : { mcpAllowedHosts: config.mcp.allowedHosts }),
    redisTimeoutMs: config.redisTimeoutMs,
    leaseMs: config.leaseMs,
    bytesInFlight: config.bytesInFlight,
    uploadIdleMs: config.uploadIdleMs,
    ...(config.audit === null
      ? {}
      : {
          audit: {
            ...config.audit,
            // In memory, and of this pod alone: nobody can continue its chain when it is gone.
            keyFile: path.join(path.dirname(runDir), "audit.pem"),
            writer: pod,
          },
        }),
    caFile: caFileOf(config, env, runDir),
    ...(mock === undefined ? {} : { mock: { host: mock.host, port: mock.port } }),
    ...(config.guardEndpoint === undefined ? {} : { guardEndpoint: config.guardEndpoint }),
    descriptorSet: path.join(root, "src/gen/envoy.binpb"),
    logLevel: config.logLevel,
  };
  const gateway = new SupervisedProcess({
    name: "gateway",
    command: process.execPath,
    args: ["--enable-source-maps", path.join(root, "dist/gateway.js"), JSON.stringify(options)],
    env,
    log,
  });
  const drainMs = config.drainSeconds * 1_000;
  const proxy = gatewayEnvoy({
    root,
    envoy,
    runDir,
    nodeId: pod,
    heapBytes: config.envoy.heapBytes,
    concurrency: config.envoy.concurrency ?? os.availableParallelism(),
    drainMs,
    log,
    onError: () => undefined,
  });
  const status = async (): Promise<GatewayStatus> => {
    const { status: code, body } = await unixRequest(controlSocket, "/status");
    if (code !== 200) throw new Error(`status ${code}`);
    return JSON.parse(body) as GatewayStatus;
  };
  let leaving = false;
  const admin = await serveAdmin(config.admin, {
    status,
    notReady: async () => {
      if (leaving) return "the pod is leaving";
      const known = await status().catch(() => undefined);
      return known === undefined ? "the gateway service does not answer" : known.reason;
    },
  });
  gateway.start();
  proxy.start();
  return {
    stop: async () => {
      leaving = true;
      await announceLeaving(runDir);
      await new Promise((resolve) => setTimeout(resolve, config.drainDelaySeconds * 1_000));
      const activeCalls = async (): Promise<number> => (await status()).activeCalls;
      await drain({ runDir, drainMs, activeCalls, log });
      await Promise.all([proxy.stop(STOP_GRACE_MS), gateway.stop(STOP_GRACE_MS)]);
      admin.close();
      admin.closeAllConnections();
      await mock?.close();
    },
  };
}

/** @throws StartError */
function caFileOf(
  { upstreamCaFile }: GatewayConfig,
  env: NodeJS.ProcessEnv,
  runDir: string,
): string {
  const system = findCaBundle(caBundleOf(env), runDir);
  return upstreamCaFile === null ? system : joinBundles([system, upstreamCaFile], runDir);
}

/** @throws ConfigFileError */
function required(env: NodeJS.ProcessEnv, name: string): string {
  const value = env[name] ?? "";
  if (value === "")
    throw new ConfigFileError(
      `${name} is not set. Set it from the pod's own metadata (valueFrom.fieldRef).`,
    );
  return value;
}

interface AdminAnswers {
  readonly status: () => Promise<GatewayStatus>;
  /** Returns the reason why the pod is not ready; undefined if it is. */
  readonly notReady: () => Promise<string | undefined>;
}

/** Plain HTTP for the kubelet, and for `svc proxy-status`. It shows nothing secret. */
async function serveAdmin(
  { address, port }: GatewayConfig["admin"],
  { status, notReady }: AdminAnswers,
): Promise<http.Server> {
  const answer = async (url: string): Promise<readonly [number, string]> => {
    switch (url) {
      case "/livez":
        return [200, "ok\n"];
      case "/readyz": {
        const reason = await notReady();
        return reason === undefined ? [200, "ok\n"] : [503, `${reason}\n`];
      }
      case "/status":
        return [200, JSON.stringify(await status())];
      default:
        return [404, "not found\n"];
    }
  };
  const server = http.createServer((request, response) => {
    answer(request.url ?? "").then(
      ([code, body]) => response.writeHead(code).end(body),
      () => response.writeHead(503).end("the gateway service does not answer\n"),
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, address, resolve);
  });
  return server;
}
