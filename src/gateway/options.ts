/** Options of the gateway service's process: one JSON argument, written by `svc up`. */
import * as z from "zod";
import { auditSchema } from "../audit/options.ts";
import { cidrSchema } from "../resources/cidr.ts";

export const gatewayOptionsSchema = z.strictObject({
  /** Folder of resources. */
  resources: z.string(),
  /** Private folder of Unix sockets. */
  runDir: z.string(),
  /** File with the key from which workload tokens are derived. */
  workloadKeyFile: z.string(),
  /** Unix socket of the local control API (`svc status`). */
  controlSocket: z.string(),
  listen: z.strictObject({ address: z.string(), port: z.int().min(1).max(65535) }),
  /** Listener for an ingress; undefined for none. */
  external: z.strictObject({ address: z.string(), port: z.int().min(1).max(65535) }).optional(),
  /** CIDR blocks of proxies whose `X-Forwarded-For` is trusted. */
  trustedProxies: z.array(cidrSchema).default([]),
  /**
   * Longest wait of a request for Redis, in milliseconds, before this process decides by what it
   * knows itself.
   */
  redisTimeoutMs: z.int().min(1).default(40),
  /** Time for which a lease in Redis (see redis.ts) survives its process, in milliseconds. */
  leaseMs: z.int().min(100).default(30_000),
  /** Bounds of the request bodies held at once, in bytes. */
  bytesInFlight: z
    .strictObject({ total: z.int().min(1), perCaller: z.int().min(1) })
    .default({ total: 256 * 1024 * 1024, perCaller: 64 * 1024 * 1024 }),
  /** Maximum pause of an upload, and the time that every upload has, in milliseconds. */
  uploadIdleMs: z.int().min(100).default(15_000),
  /** The audit chain; undefined for none. */
  audit: auditSchema.optional(),
  /**
   * Source of the variables that resources name (`env` of a Secret, `whenEnv`), and of
   * `SVC_REDIS_*`: the process's own environment, or a JSON object on its standard input.
   */
  environment: z.enum(["process", "stdin"]).default("process"),
  /** PEM bundle against which upstreams are verified. */
  caFile: z.string(),
  /** Descriptor set of Envoy's messages. */
  descriptorSet: z.string(),
  mock: z.strictObject({ host: z.string(), port: z.int() }).optional(),
  /** Price overrides (`svc-model-prices`); undefined for none. */
  pricesFile: z.string().optional(),
  pricesReloadMs: z.int().default(60_000),
  logLevel: z.string().default("info"),
});

export type GatewayOptions = z.infer<typeof gatewayOptionsSchema>;
export type GatewayOptionsInput = z.input<typeof gatewayOptionsSchema>;
