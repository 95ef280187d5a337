/**
 * The connection to Redis: one, shared by all requests, never queueing for a store that is not
 * there.
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
 * How long to wait before connecting again, `failures` attempts after the last time that the store
 * was used. Half of it is chance: replicas that lost the store together do not come back together.
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
    // A name is asked for, an address cannot be.
    ...(options.tls !== undefined && {
      tls: { ...options.tls, ...(isIP(options.host) === 0 && { servername: options.host }) },
    }),
    // RESP2 is what every compatible store speaks; CLIENT SETINFO and INFO may be forbidden to us,
    // and our probe knows more.
    protocol: 2,
    disableClientInfo: true,
    enableReadyCheck: false,
    connectTimeout: CONNECT_TIMEOUT_MS,
    keepAlive: KEEP_ALIVE_MS,
    noDelay: true,
    retryStrategy: retryMs,
    // A command that was under way when the connection broke fails at once: without it ioredis
    // never answers it, as it is not sent again. What it may have done is sent again as a state.
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    enableOfflineQueue: false,
    // Deadlines are the circuit's: a command timeout would reject an answer that is already in the
    // socket's buffer. Auto-pipelining would hold commands back until the pipeline before them is
    // answered.
    enableAutoPipelining: false,
    scripts: { svcAdmit: { lua: ADMIT }, svcSync: { lua: SYNC }, svcProbe: { lua: PROBE } },
  });
}

const HINTS: Readonly<Record<string, string>> = {
  NOAUTH: "it asks for a password and none is set",
  WRONGPASS: "user or password are wrong",
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
 * For the log: what is wrong, never with a password (Redis repeats arguments of commands that it
 * does not know).
 */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return "unknown";
  const code = /^-?([A-Z]+)\b/.exec(error.message)?.[1];
  const hint = code === undefined ? undefined : HINTS[code];
  if (hint !== undefined) return `${code}: ${hint}`;
  if (code === "ERR" && /auth/i.test(error.message)) return "ERR: it refuses how we authenticate";
  // An attempt at several addresses has no words of its own.
  if (error.message === "") return (error as NodeJS.ErrnoException).code ?? error.name;
  return error.message.replace(/,? with args beginning with.*/s, "").slice(0, 200);
}
