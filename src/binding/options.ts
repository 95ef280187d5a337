/**
 * Options of the sidecar service's process: one JSON argument, made by whoever starts it. Secrets
 * come by environment.
 */
import { z } from "zod";
import { auditSchema } from "../audit/options.ts";

const listen = z.strictObject({
  address: z.string(),
  port: z.int().min(1).max(65_535),
  /** Path of the network namespace to listen in. */
  netns: z.string().optional(),
});

export const sidecarOptionsSchema = z.strictObject({
  /** `<namespace>/<name>` of the agent. */
  workload: z.string(),
  /** File of resolved providers (`svc-{workload}-providers`). */
  specFile: z.string(),
  /** How often the file is looked at, milliseconds. */
  pollMs: z.int().min(100).default(30_000),
  /** Private folder: sockets, and Envoy's configuration. */
  runDir: z.string(),
  /** Shared with the agent: certificates to trust. */
  trustDir: z.string(),
  listen: z.strictObject({
    http: listen,
    https: listen,
    /** A way to the gateway from inside the namespace. */
    gateway: listen
      .extend({ target: z.strictObject({ address: z.string(), port: z.int() }) })
      .optional(),
  }),
  audit: auditSchema.optional(),
  /** `address` or `address:port`; left out: those of /etc/resolv.conf. */
  dnsServers: z.array(z.string()).min(1).optional(),
  /** Port of real endpoints. */
  upstreamPort: z.int().min(1).max(65_535).default(443),
  /** PEM bundle that real endpoints are verified against. */
  upstreamCaFile: z.string(),
  /** PEM bundle of the system's roots, for the agent's bundle. */
  systemCaFile: z.string().optional(),
  /**
   * Lives of the sidecar's certificates, milliseconds; left out: a year for the authority, a day
   * for a leaf.
   */
  certificates: z
    .strictObject({
      authorityMs: z.int().min(1_000),
      leafMs: z.int().min(1_000),
      slackMs: z.int().min(0),
    })
    .optional(),
  logLevel: z.string().default("info"),
});

export type SidecarServiceOptions = z.infer<typeof sidecarOptionsSchema>;
export type SidecarServiceOptionsInput = z.input<typeof sidecarOptionsSchema>;
