/**
 * The connection to Redis: one, shared by all requests, which never queues commands for an
 * unavailable store.
 */
import { isIP } from "node:net";
import { Redis, type Result } from "ioredis";
import type { RedisOptions } from "./redis-options.ts";
import { ADMIT, PROBE, SYNC } from "./scripts.ts";

declare module "ioredis" {
  // The names and parameters of ioredis' own declaration.
  interface RedisCommander<Context> {
    svcAdmit(
      keys: number,
      ...keysAndArguments: readonly (string | number)[]
    ): Result<number[], Context>;
    svcSync(
      keys: number,
      ...keysAndArguments: readonly (string | number)[]
    ): Result<number[], Context>;
    svcProbe(
      keys: number,
      ...keysAndArguments: readonly (string | number)[]
    ): Result<string, Context>;
  }
}

const CONNECT_TIMEOUT_MS = 2_000;
const KEEP_ALIVE_MS = 10_000;
const FIRST_BACKOFF_MS = 20;
const MAX_BACKOFF_MS = 2_000;

/**
 * Returns the delay before the next connection attempt, after `failures` failed attempts. Half of
 * it is random, so that replicas that lost the store together do not reconnect at the same time.
 */
export function backoffMs(failures: number, random: () => number): number {
  const most = Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** Math.min(failures, 10));
  return most / 2 + (random() * most) / 2;
}

export function connectRedis(options: RedisOptions, retryMs: () => number): Redis {
  return new Redis({
    host: options.host,
    port: options.port,
    db: options.database,
    ...(options.username !== undefined && { username: options.username }),
    ...(options.password !== undefined && { password: options.password.reveal() }),
    // A host name is sent as SNI, an address cannot be.
    ...(options.tls !== undefined && {
      tls: { ...options.tls, ...(isIP(options.host) === 0 && { servername: options.host }) },
    }),
    // RESP2 is spoken by every compatible store; CLIENT SETINFO and INFO may be forbidden to us,
    // and our probe checks more.
    protocol: 2,
    disableClientInfo: true,
    enableReadyCheck: false,
    connectTimeout: CONNECT_TIMEOUT_MS,
    keepAlive: KEEP_ALIVE_MS,
    noDelay: true,
    retryStrategy: retryMs,
    // A pending command fails at once when the connection breaks: otherwise ioredis never answers
    // it, because it is not sent again. Its effects are written again as a state.
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    enableOfflineQueue: false,
    // The circuit has its own deadlines: a command timeout would reject an answer that is already
    // in the socket's buffer. Auto-pipelining would delay commands until the previous pipeline is
    // answered.
    enableAutoPipelining: false,
    scripts: { svcAdmit: { lua: ADMIT }, svcSync: { lua: SYNC }, svcProbe: { lua: PROBE } },
  });
}

const HINTS: Readonly<Record<string, string>> = {
  NOAUTH: "it asks for a password and none is set",
  WRONGPASS: "the user or the password is wrong",
  NOPERM: "the user lacks a permission: it needs +@scripting +@read +@write on keys svc:*",
  OOM: "its memory is full: raise maxmemory",
  READONLY: "it is a replica: use the address of the primary",
  LOADING: "it is loading its data",
  MOVED: "it is one node of a Redis Cluster: use an address that serves all slots",
  CLUSTERDOWN: "its cluster is down",
  MISCONF: "it cannot save to disk",
  MASTERDOWN: "it has lost its primary",
};

/**
 * Returns the problem for the log, never with a password (Redis echoes arguments of unknown
 * commands).
 */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return "unknown";
  const code = /^-?([A-Z]+)\b/.exec(error.message)?.[1];
  const hint = code === undefined ? undefined : HINTS[code];
  if (hint !== undefined) return `${code}: ${hint}`;
  if (code === "ERR" && /auth/i.test(error.message))
    return "ERR: it rejects the authentication command";
  // An attempt to connect to several addresses has an empty message.
  if (error.message === "") return (error as NodeJS.ErrnoException).code ?? error.name;
  return error.message.replace(/,? with args beginning with.*/s, "").slice(0, 200);
}
