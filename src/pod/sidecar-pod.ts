/**
 * A sidecar in its pod: the service that decides, and its Envoy as a child process, which it starts
 * again when it ends. There is one of these in every pod, so that no further process supervises the
 * service: when it ends, the container does, and the kubelet starts that again.
 */
import { mkdirSync, rmSync } from "node:fs";
import http from "node:http";
import os from "node:os";
import path from "node:path";
import type { SidecarServiceOptionsInput } from "../binding/options.ts";
import { sidecarOptionsSchema } from "../binding/options.ts";
import { ENVOY_CONFIG, startSidecar } from "../binding/service.ts";
import { findCaBundle, joinBundles } from "../host/ca-bundle.ts";
import type { Logger } from "../platform/log.ts";
import { SupervisedProcess } from "../platform/supervised-process.ts";
import { unixRequest } from "../platform/unix-http.ts";
import { envoyLineLogger } from "../up/envoy-log.ts";
import {
  AUDIT_DIR,
  EXTRA_ROOTS_FILE,
  RUN_DIR,
  type SidecarPodOptions,
  TRUST_DIR,
  writerOf,
} from "./sidecar-options.ts";

export interface SidecarPod {
  stop(): Promise<void>;
}

const ENVOY = "/usr/local/bin/envoy";
const ENVOY_ADMIN = path.join(RUN_DIR, "envoy-admin.sock");
const SERVICE = path.join(RUN_DIR, "sidecar.sock");
const LOOPBACK = "127.0.0.1";
const STOP_GRACE_MS = 5_000;
/** Longest wait for the ends of the last calls to be recorded, in milliseconds. */
const RECORD_GRACE_MS = 2_000;
const POLL_MS = 50;

/** Resolves when both are started. @throws Error that states the problem */
export async function startSidecarPod(
  options: SidecarPodOptions,
  env: NodeJS.ProcessEnv,
  log: Logger,
): Promise<SidecarPod> {
  rmSync(path.join(RUN_DIR, ENVOY_CONFIG), { force: true });
  const service = await startSidecar(
    sidecarOptionsSchema.parse(serviceOptions(options, env["POD_NAME"] ?? os.hostname())),
    env,
    log,
  );
  let stopping = false;
  const proxy = new SupervisedProcess({
    name: "envoy",
    command: ENVOY,
    args: [
      ["--config-path", path.join(RUN_DIR, ENVOY_CONFIG)],
      ["--disable-hot-restart"],
      ["--concurrency", "1"],
      ["--log-level", "warning"],
      ["--log-format", "%l|%n|%v"],
    ].flat(),
    env: {},
    log,
    onLine: stoppable(
      envoyLineLogger(log, () => undefined),
      () => stopping,
    ),
  });
  proxy.start();
  const admin = await serveAdmin(options.ports.metrics);
  return {
    stop: async () => {
      stopping = true;
      await recorded();
      // The proxy is stopped first, so that calls that it interrupts are still recorded.
      await proxy.stop(STOP_GRACE_MS);
      await service.close();
      admin.close();
      admin.closeAllConnections();
    },
  };
}

function serviceOptions(options: SidecarPodOptions, pod: string): SidecarServiceOptionsInput {
  const { workload, specFile, pollMs, ports, dnsNames, dnsServers, audit, logLevel } = options;
  const system = findCaBundle(undefined, RUN_DIR);
  mkdirSync(RUN_DIR, { recursive: true, mode: 0o700 });
  return {
    workload,
    specFile,
    pollMs,
    runDir: RUN_DIR,
    trustDir: TRUST_DIR,
    listen: {
      http: { address: LOOPBACK, port: ports.http },
      https: { address: LOOPBACK, port: ports.https },
      dns: { address: LOOPBACK, port: ports.dns },
    },
    dnsNames,
    dnsServers,
    upstreamCaFile: options.extraRoots ? joinBundles([system, EXTRA_ROOTS_FILE], RUN_DIR) : system,
    systemCaFile: system,
    ...(audit
      ? {
          audit: {
            dir: path.join(AUDIT_DIR, "audit"),
            // In memory, and of this pod alone: nobody can continue its chain when it is gone.
            keyFile: path.join(RUN_DIR, "audit.pem"),
            writer: writerOf(pod),
            onFailure: "refuse",
            sync: "group",
          },
        }
      : {}),
    logLevel,
  };
}

function stoppable(onLine: (line: string) => void, isStopped: () => boolean) {
  return (line: string): void => {
    if (!isStopped()) onLine(line);
  };
}

/** Probes and metrics, for the kubelet and Prometheus: the packet rules keep the agent from it. */
async function serveAdmin(port: number): Promise<http.Server> {
  const answer = async (url: string): Promise<readonly [number, string]> => {
    switch (url) {
      case "/livez":
        return [200, "ok\n"];
      case "/readyz": {
        const states = await Promise.all([
          unixRequest(ENVOY_ADMIN, "/ready"),
          unixRequest(SERVICE, "/readyz"),
        ]);
        return states.every(({ status }) => status === 200) ? [200, "ok\n"] : [503, "not ready\n"];
      }
      case "/metrics":
        return [200, (await unixRequest(SERVICE, "/metrics")).body];
      default:
        return [404, "not found\n"];
    }
  };
  const server = http.createServer((request, response) => {
    answer(request.url ?? "").then(
      ([code, body]) => response.writeHead(code, { "content-type": "text/plain" }).end(body),
      () => response.writeHead(503).end("not ready\n"),
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, resolve);
  });
  return server;
}

/** Resolves when the ends of all calls are recorded, or the time for it has passed. */
async function recorded(): Promise<void> {
  const deadline = performance.now() + RECORD_GRACE_MS;
  while (performance.now() < deadline) {
    const answer = await unixRequest(SERVICE, "/calls").catch(() => undefined);
    if (answer === undefined || Number(answer.body) === 0) return;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}
