/** Options of the gateway service's process: one JSON argument, made by `svc up`. */
import { z } from "zod";

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
