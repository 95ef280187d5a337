/**
 * The sidecar of one run: the service that makes the decisions, with the secrets in its
 * environment, and its Envoy.
 */
import { existsSync } from "node:fs";
import path from "node:path";
import { SIDECAR_NODE_ENV, SIDECAR_NODE_FLAGS } from "../binding/node-flags.ts";
import type { Logger } from "../platform/log.ts";
import type { Secret } from "../platform/secret.ts";
import { SupervisedProcess } from "../platform/supervised-process.ts";
import { unixRequest } from "../platform/unix-http.ts";
import { envoyLineLogger } from "../up/envoy-log.ts";
import { StartError } from "../host/errors.ts";
import { TOOLS_PATH } from "./tools.ts";

export interface AgentSidecarOptions {
  /** The package's root. */
  readonly root: string;
  readonly envoy: string;
  /** Options of the sidecar service's process, as JSON. */
  readonly service: { readonly runDir: string } & Readonly<Record<string, unknown>>;
  readonly secrets: Readonly<Record<string, Secret>>;
  readonly log: Logger;
  /** Receives the service's log lines. */
  readonly onLine: (line: string) => void;
}

export interface AgentSidecar {
  readonly stop: () => Promise<void>;
}

/** File that the service writes for Envoy, in its folder, before it is ready. */
export const SIDECAR_BOOTSTRAP = "envoy.json";
const SIDECAR_SOCKET = "sidecar.sock";
/** Socket of Envoy's admin interface. */
const ENVOY_SOCKET = "envoy-admin.sock";

const READY_TIMEOUT_MS = 30_000;
const POLL_MS = 20;
const STOP_GRACE_MS = 5_000;
/**
 * Maximum time for Envoy to report the ends of the last calls, which it does in batches of a tenth
 * of a second.
 */
const RECORD_GRACE_MS = 2_000;
const TOO_MANY_RESTARTS = 3;

/** Resolves when it serves. @throws StartError */
export async function startSidecar(options: AgentSidecarOptions): Promise<AgentSidecar> {
  const { root, envoy, service, secrets, log, onLine } = options;
  const { runDir } = service;
  const bootstrap = path.join(runDir, SIDECAR_BOOTSTRAP);
  let lastWords = "";
  let stopping = false;
  const envoyLine = envoyLineLogger(log, (line) => (lastWords = line));
  const judge = new SupervisedProcess({
    name: "sidecar",
    command: process.execPath,
    args: [...SIDECAR_NODE_FLAGS, path.join(root, "dist/sidecar.js"), JSON.stringify(service)],
    env: {
      PATH: TOOLS_PATH,
      ...SIDECAR_NODE_ENV,
      ...Object.fromEntries(
        Object.entries(secrets).map(([name, secret]) => [name, secret.reveal()]),
      ),
    },
    log,
    ownSession: true,
    onLine: (line) => {
      lastWords = line;
      onLine(line);
    },
  });
  const proxy = new SupervisedProcess({
    name: "envoy",
    command: envoy,
    args: [
      "--config-path",
      bootstrap,
      "--disable-hot-restart",
      "--concurrency",
      "1",
      "--log-level",
      "warning",
      "--log-format",
      "%l|%n|%v",
    ],
    env: {},
    log,
    ownSession: true,
    // Its messages about connections closed during the stop are not logged.
    onLine: (line) => {
      if (!stopping) envoyLine(line);
    },
  });
  const stop = async (): Promise<void> => {
    stopping = true;
    await recorded(path.join(runDir, SIDECAR_SOCKET));
    // The proxy is stopped first, so that calls that it interrupts are still recorded.
    await proxy.stop(STOP_GRACE_MS);
    await judge.stop(STOP_GRACE_MS);
  };
  const until = async (good: () => boolean | Promise<boolean>): Promise<void> => {
    const deadline = performance.now() + READY_TIMEOUT_MS;
    while (!(await good())) {
      if (
        performance.now() > deadline ||
        judge.restarts >= TOO_MANY_RESTARTS ||
        proxy.restarts >= TOO_MANY_RESTARTS
      ) {
        throw new StartError(
          "The sidecar did not become ready. " +
            (lastWords === "" ? "It logged nothing." : `Its last words: ${lastWords}`),
        );
      }
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  };
  try {
    judge.start();
    await until(() => existsSync(bootstrap));
    proxy.start();
    await until(
      async () =>
        (await answers(path.join(runDir, ENVOY_SOCKET), "/ready")) &&
        (await answers(path.join(runDir, SIDECAR_SOCKET), "/readyz")),
    );
  } catch (error) {
    await stop();
    throw error;
  }
  return { stop };
}

async function answers(socket: string, url: string): Promise<boolean> {
  const answer = await unixRequest(socket, url).catch(() => undefined);
  return answer?.status === 200;
}

/** Resolves when the ends of all calls are recorded, or the time for it has passed. */
async function recorded(socket: string): Promise<void> {
  const deadline = performance.now() + RECORD_GRACE_MS;
  while (performance.now() < deadline) {
    const answer = await unixRequest(socket, "/calls").catch(() => undefined);
    if (answer === undefined || Number(answer.body) === 0) return;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}
