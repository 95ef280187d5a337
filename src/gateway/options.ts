/** Options of the gateway service's process: one JSON argument, made by `svc up`. */
import { z } from "zod";
import { auditSchema } from "../audit/options.ts";
import { cidrSchema } from "../resources/cidr.ts";

export const gatewayOptionsSchema = z.strictObject({
  /** Folder of resources. */
  resources: z.string(),
  /** Private folder of Unix sockets. */
  runDir: z.string(),
  /** File with the key that workload tokens are derived from. */
  workloadKeyFile: z.string(),
  /** Unix socket of the local control API (`svc status`). */
  controlSocket: z.string(),
  listen: z.strictObject({ address: z.string(), port: z.int().min(1).max(65535) }),
  /** What an ingress may publish; undefined for none. */
  external: z.strictObject({ address: z.string(), port: z.int().min(1).max(65535) }).optional(),
  /** CIDR blocks of proxies whose `X-Forwarded-For` is believed. */
  trustedProxies: z.array(cidrSchema).default([]),
  /** How long a lease in Redis (see redis.ts) outlives its process, in milliseconds. */
  leaseMs: z.int().min(100).default(30_000),
  /** Bounds of the request bodies that are held at once, in bytes. */
  bytesInFlight: z
    .strictObject({ total: z.int().min(1), perCaller: z.int().min(1) })
    .default({ total: 256 * 1024 * 1024, perCaller: 64 * 1024 * 1024 }),
  /** Longest pause of an upload, and the time that every upload has, in milliseconds. */
  uploadIdleMs: z.int().min(100).default(15_000),
  /** The audit chain; undefined for none. */
  audit: auditSchema.optional(),
  /**
   * Where the variables are that resources name (`env` of a Secret, `whenEnv`), and `SVC_REDIS_*`:
   * in the process's own environment, or in a JSON object on its standard input.
   */
  environment: z.enum(["process", "stdin"]).default("process"),
  /** PEM bundle that upstreams are verified against. */
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
