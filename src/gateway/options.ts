/**
 * Options of the gateway service's process: one JSON argument, written by `svc up`, or by the
 * supervisor of the gateway's pod.
 */
import * as z from "zod";
import { auditSchema } from "../audit/options.ts";
import { cidrSchema } from "../resources/cidr.ts";
import { guardEndpointSchema } from "../resources/guard-binding.ts";
import { nameSchema, subdomainSchema } from "../resources/metadata.ts";
import { hostSchema, originSchema } from "../resources/web-origin.ts";

/** Where the resources of a gateway in a cluster are, and where it writes their statuses. */
const clusterSchema = z.strictObject({
  /** Namespaces whose resources are read; empty for all. */
  namespaces: z.array(nameSchema),
  /** Namespace of the gateway itself. */
  ownNamespace: nameSchema,
  /** Name of this replica's pod. */
  pod: z.string(),
  /** Secret in its own namespace with the keys from which workload tokens are derived. */
  workloadKeySecret: subdomainSchema,
  /** Lease of the replica that writes statuses, and the interval of writing usage, in seconds. */
  statusWriter: z.strictObject({ leaseName: subdomainSchema, intervalSeconds: z.int().min(1) }),
});

export type ClusterOptions = z.infer<typeof clusterSchema>;

export const gatewayOptionsSchema = z.strictObject({
  /** Folder of resources; undefined in a cluster. */
  resources: z.string().optional(),
  /** The Kubernetes API as source of resources; undefined for a folder. */
  kubernetes: clusterSchema.optional(),
  /** Private folder of Unix sockets. */
  runDir: z.string(),
  /** File with the key from which workload tokens are derived; undefined in a cluster. */
  workloadKeyFile: z.string().optional(),
  /** Unix socket of the local control API (`svc status`). */
  controlSocket: z.string(),
  listen: z.strictObject({ address: z.string(), port: z.int().min(1).max(65535) }),
  /** Listener for an ingress; undefined for none. */
  external: z.strictObject({ address: z.string(), port: z.int().min(1).max(65535) }).optional(),
  /** CIDR blocks of proxies whose `X-Forwarded-For` is trusted. */
  trustedProxies: z.array(cidrSchema).default([]),
  /** Origins of web pages that may call MCP servers. */
  mcpAllowedOrigins: z.array(originSchema).default([]),
  /** Hosts under which the MCP gateway is published; undefined for any. */
  mcpAllowedHosts: z.array(hostSchema).min(1).optional(),
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
  /** Base URL of the guard service; undefined for none. */
  guardEndpoint: guardEndpointSchema.optional(),
  /** Price overrides (`svc-model-prices`); undefined for none. */
  pricesFile: z.string().optional(),
  pricesReloadMs: z.int().default(60_000),
  logLevel: z.string().default("info"),
});

export type GatewayOptions = z.infer<typeof gatewayOptionsSchema>;
export type GatewayOptionsInput = z.input<typeof gatewayOptionsSchema>;
