/**
 * Options of a sidecar in its pod, and the places where it finds them. JSON, since the sidecar
 * holds no parser of YAML in memory.
 */
import * as z from "zod";
import { dnsNameSchema } from "../binding/dns/names.ts";

/** Folder of the ConfigMap `svc-{workload}-providers`. */
export const CONFIG_DIR = "/etc/svc";
/** Its keys. */
export const OPTIONS_FILE = "sidecar.json";
export const SPEC_FILE = "providers.json";
/** Private folder of sockets, on an emptyDir. */
export const RUN_DIR = "/run/svc-sidecar";
/** An emptyDir that sidecar and agent mount, and the folder in it of the certificates to trust. */
export const SHARED_DIR = "/run/svc";
export const TRUST_DIR = "/run/svc/trust";
/** Folder of the audit chain, on a volume. */
export const AUDIT_DIR = "/var/lib/svc";
/** Roots of `sidecar.upstreamCaConfigMap`. */
export const EXTRA_ROOTS_FILE = "/etc/svc-roots/ca.crt";

/** Name of the chain of a pod. */
export const writerOf = (pod: string): string => `sidecar-${pod}`;

const port = z.int().min(1).max(65_535);

export const sidecarPodOptionsSchema = z.strictObject({
  /** `<namespace>/<name>` of the agent. */
  workload: z.string(),
  /** File of resolved providers, which is watched. */
  specFile: z.string(),
  /** Interval between checks of the file, in milliseconds. */
  pollMs: z.int().min(100),
  /** HTTPS, HTTP and DNS on loopback; metrics and probes on every address. */
  ports: z.strictObject({ https: port, http: port, dns: port, metrics: port }),
  /** Names besides the bound hosts that the agent may look up. */
  dnsNames: z.array(dnsNameSchema),
  /** Addresses of the cluster's DNS servers. */
  dnsServers: z.array(z.string()).min(1),
  /** Whether calls are recorded. */
  audit: z.boolean(),
  /** Whether {@link EXTRA_ROOTS_FILE} is trusted besides the system's roots. */
  extraRoots: z.boolean(),
  logLevel: z.string(),
});

export type SidecarPodOptions = z.output<typeof sidecarPodOptionsSchema>;
