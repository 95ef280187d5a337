/**
 * Configuration of a gateway's pod: a YAML file, mounted from a ConfigMap. Every field has a
 * default; unknown fields are errors.
 */
import * as z from "zod";
import { auditFolderSchema } from "../audit/options.ts";
import { cidrSchema } from "../resources/cidr.ts";
import { guardEndpointSchema } from "../resources/guard-binding.ts";
import { nameSchema, subdomainSchema } from "../resources/metadata.ts";
import { hostSchema, originSchema } from "../resources/web-origin.ts";

const port = z.int().min(1).max(65_535);
const MIB = 1024 * 1024;

export const gatewayConfigSchema = z.strictObject({
  /** Listener for the cluster. */
  listen: z
    .strictObject({ address: z.string().default("0.0.0.0"), port: port.default(8000) })
    .prefault({}),
  /** Listener for an ingress; null for none. */
  external: z
    .strictObject({ address: z.string().default("0.0.0.0"), port: port.default(8080) })
    .nullable()
    .prefault({}),
  /** Plain HTTP of the supervisor: /livez, /readyz, /status. */
  admin: z
    .strictObject({ address: z.string().default("0.0.0.0"), port: port.default(8002) })
    .prefault({}),
  /** CIDR blocks of proxies whose `X-Forwarded-For` is trusted. */
  trustedProxies: z.array(cidrSchema).default([]),
  /**
   * PEM file of roots that are trusted at upstreams in addition to the public ones; null for none.
   */
  upstreamCaFile: z.string().min(1).nullable().default(null),
  /** The MCP gateway. */
  mcp: z
    .strictObject({
      /** Origins of web pages that may call MCP servers. */
      allowedOrigins: z.array(originSchema).default([]),
      /** Hosts under which it is published; empty for any. */
      allowedHosts: z.array(hostSchema).default([]),
    })
    .prefault({}),
  /** Namespaces whose resources are read; empty for all. */
  namespaces: z.array(nameSchema).default([]),
  /** Secret in the gateway's own namespace with the keys of workload tokens. */
  workloadKeySecret: subdomainSchema.default("svc-workload-key"),
  /** Lease of the replica that writes statuses, and the interval of writing usage. */
  statusWriter: z
    .strictObject({
      leaseName: subdomainSchema.default("svc-gateway-status"),
      intervalSeconds: z.int().min(1).default(60),
    })
    .prefault({}),
  /** Longest wait of a request for Redis, in milliseconds. */
  redisTimeoutMs: z.int().min(1).default(40),
  /** Time for which a lease in Redis survives a gateway that died, in milliseconds. */
  leaseMs: z.int().min(100).default(30_000),
  /** Bounds of the request bodies held at once, in bytes. */
  bytesInFlight: z
    .strictObject({
      total: z
        .int()
        .min(1)
        .default(256 * MIB),
      perCaller: z
        .int()
        .min(1)
        .default(64 * MIB),
    })
    .prefault({}),
  /** Maximum pause of an upload, in milliseconds. */
  uploadIdleMs: z.int().min(100).default(15_000),
  /** The audit chain of this replica; null for none. */
  audit: z
    .strictObject({
      /** Folder of all chains, on a volume. */
      dir: z.string().default("/var/lib/svc/audit"),
      onFailure: auditFolderSchema.shape.onFailure.default("refuse"),
      sync: auditFolderSchema.shape.sync.default("group"),
      space: auditFolderSchema.shape.space,
    })
    .nullable()
    .prefault({}),
  envoy: z
    .strictObject({
      /** Heap size at which Envoy accepts no more requests, in bytes. */
      heapBytes: z
        .int()
        .min(64 * MIB)
        .default(1024 * MIB),
      /** Worker threads; null for one for each CPU that the pod may use. */
      concurrency: z.int().min(1).nullable().default(null),
    })
    .prefault({}),
  /** Base URL of the guard service; undefined for none. */
  guardEndpoint: guardEndpointSchema.optional(),
  /** Whether ModelProviders of kind `mock` are served, by a model in the pod: to try things. */
  mock: z.boolean().default(false),
  /** Longest time that calls under way have after SIGTERM. */
  drainSeconds: z.int().min(0).default(600),
  /** Time in which the pod's leaving is seen, before it accepts no more connections. */
  drainDelaySeconds: z.int().min(0).default(5),
  logLevel: z.string().default("info"),
});

export type GatewayConfig = z.output<typeof gatewayConfigSchema>;
