/**
 * Options of the sidecar service's process: one JSON argument, written by the process that starts
 * it. Secrets come by environment.
 */
import * as z from "zod";
import { auditSchema } from "../audit/options.ts";
import { dnsNameSchema } from "./dns/names.ts";

const listen = z.strictObject({
  address: z.string(),
  port: z.int().min(1).max(65_535),
  /** Path of the network namespace to listen in. */
  netns: z.string().optional(),
});

const schema = z.strictObject({
  /** `<namespace>/<name>` of the agent. */
  workload: z.string(),
  /** File of resolved providers (`svc-{workload}-providers`). */
  specFile: z.string(),
  /** Interval between checks of the file, in milliseconds. */
  pollMs: z.int().min(100).default(30_000),
  /** Private folder for sockets and Envoy's configuration. */
  runDir: z.string(),
  /** Folder of trusted certificates, shared with the agent. */
  trustDir: z.string(),
  listen: z.strictObject({
    http: listen,
    https: listen,
    /** Listener inside the namespace that forwards to the gateway. */
    gateway: listen
      .extend({ target: z.strictObject({ address: z.string(), port: z.int() }) })
      .optional(),
    /** DNS for the agent, over UDP and TCP; undefined: none. */
    dns: listen.optional(),
  }),
  /** Names besides the bound hosts that the agent may look up: the gateway's, the cluster's. */
  dnsNames: z.array(dnsNameSchema).max(1_000).default([]),
  audit: auditSchema.optional(),
  /**
   * Private folder, shared by the sidecars of this machine, for what plugins keep beyond their
   * process; undefined for none.
   */
  stateDir: z.string().optional(),
  /** User that MCP servers of the transport `stdio` run as; default: the sidecar's own. */
  serverUser: z
    .strictObject({ uid: z.int().min(1), gid: z.int().min(1), home: z.string() })
    .optional(),
  /**
   * Servers of the sidecar's own look-ups, as `address` or `address:port`; default: those of
   * /etc/resolv.conf. Required where the sidecar shares this file with the agent, because it names
   * the sidecar itself.
   */
  dnsServers: z.array(z.string()).min(1).optional(),
  /** Port of the real endpoints. */
  upstreamPort: z.int().min(1).max(65_535).default(443),
  /** PEM bundle against which real endpoints are verified. */
  upstreamCaFile: z.string(),
  /** PEM bundle of the system's roots, for the agent's bundle. */
  systemCaFile: z.string().optional(),
  /**
   * Lifetimes of the sidecar's certificates in milliseconds; default: a year for the authority, a
   * day for a leaf.
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

export const sidecarOptionsSchema = schema.refine(
  ({ listen: { dns }, dnsServers }) =>
    dns === undefined || dns.netns !== undefined || dnsServers !== undefined,
  {
    path: ["dnsServers"],
    message:
      "is required with listen.dns in the sidecar's own network namespace: the servers of " +
      "/etc/resolv.conf may be the sidecar itself",
  },
);

export type SidecarServiceOptions = z.infer<typeof sidecarOptionsSchema>;
export type SidecarServiceOptionsInput = z.input<typeof sidecarOptionsSchema>;
