/** The end of a gateway: no new connections, and time for the requests under way. */
import path from "node:path";
import type { Logger } from "../platform/log.ts";
import { unixRequest } from "../platform/unix-http.ts";
import { ENVOY_ADMIN_SOCKET } from "./envoy-process.ts";

const POLL_MS = 50;

export interface DrainOptions {
  readonly runDir: string;
  /** Longest time for the requests under way, in milliseconds. */
  readonly drainMs: number;
  /** Returns the number of calls under way; rejects when the gateway service is gone. */
  readonly activeCalls: () => Promise<number>;
  readonly log: Pick<Logger, "warn">;
}

/** From now on Envoy closes each connection after its answer, so that clients go elsewhere. */
export async function announceLeaving(runDir: string): Promise<void> {
  const admin = path.join(runDir, ENVOY_ADMIN_SOCKET);
  await unixRequest(admin, "/healthcheck/fail", "POST").catch(() => undefined);
}

/** Envoy accepts no new connections; requests under way may finish. */
export async function drain({ runDir, drainMs, activeCalls, log }: DrainOptions): Promise<void> {
  const deadline = performance.now() + drainMs;
  const admin = path.join(runDir, ENVOY_ADMIN_SOCKET);
  await announceLeaving(runDir);
  await unixRequest(admin, "/drain_listeners?inboundonly", "POST").catch(() => undefined);
  while (performance.now() < deadline) {
    if ((await activeCalls().catch(() => 0)) === 0) return;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  log.warn({ drainMs }, "calls still under way were cut off");
}
