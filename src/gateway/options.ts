/** Options of the gateway service's process: one JSON argument, made by `svc up`. */
import { z } from "zod";
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
  /** The audit chain; undefined for none. */
  audit: z
    .strictObject({
      dir: z.string(),
      keyFile: z.string(),
      /** Name of this process's chain. */
      writer: z.string(),
      onFailure: z.enum(["refuse", "continue"]),
      sync: z.enum(["group", "none"]),
    })
    .optional(),
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
