/** The gateway's Envoy, as a supervised process. */
import path from "node:path";
import type { Logger } from "../platform/log.ts";
import { SupervisedProcess } from "../platform/supervised-process.ts";
import { writeBootstrap } from "./bootstrap.ts";
import { envoyLineLogger } from "./envoy-log.ts";

export interface GatewayEnvoyOptions {
  /** The package's root. */
  readonly root: string;
  /** The Envoy binary. */
  readonly envoy: string;
  readonly runDir: string;
  readonly nodeId: string;
  /** Heap size at which it accepts no more requests, in bytes. */
  readonly heapBytes: number;
  /** Worker threads. */
  readonly concurrency: number;
  readonly drainMs: number;
  readonly log: Logger;
  /** Receives each error that it logs. */
  readonly onError: (line: string) => void;
}

/** Name of the socket of Envoy's admin interface in the run folder. */
export const ENVOY_ADMIN_SOCKET = "envoy-admin.sock";

export function gatewayEnvoy(options: GatewayEnvoyOptions): SupervisedProcess {
  const { root, envoy, runDir, nodeId, heapBytes, concurrency, drainMs, log, onError } = options;
  const bootstrap = writeBootstrap(path.join(root, "envoy/bootstrap.yaml"), {
    runDir,
    nodeId,
    maxHeapBytes: heapBytes,
  });
  return new SupervisedProcess({
    name: "envoy",
    command: envoy,
    args: [
      ["--config-path", bootstrap],
      ["--disable-hot-restart"],
      ["--concurrency", String(concurrency)],
      ["--log-level", "warning"],
      ["--log-format", "%l|%n|%v"],
      ["--drain-time-s", String(Math.max(1, Math.ceil(drainMs / 1000)))],
    ].flat(),
    env: {},
    log,
    onLine: envoyLineLogger(log, onError),
  });
}
