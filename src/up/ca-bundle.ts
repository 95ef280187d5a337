/** The roots that upstreams' certificates are verified against. */
import { existsSync, writeFileSync } from "node:fs";
import path from "node:path";
import tls from "node:tls";
import { StartError } from "./errors.ts";

/** Where distributions keep their bundle. */
const SYSTEM_BUNDLES = [
  "/etc/ssl/certs/ca-certificates.crt",
  "/etc/pki/tls/certs/ca-bundle.crt",
  "/etc/ssl/ca-bundle.pem",
  "/etc/ssl/cert.pem",
];

/** A bundle that somebody named, and by what. */
export interface NamedBundle {
  readonly file: string;
  readonly by: string;
}

/** `SVC_CA_FILE`, for `svc up`. `svc run`, which is root, takes nothing from the environment. */
export function caBundleOf(env: NodeJS.ProcessEnv): NamedBundle | undefined {
  const file = env["SVC_CA_FILE"] ?? "";
  return file === "" ? undefined : { file, by: "SVC_CA_FILE" };
}

/**
 * The named bundle, else the system's, else the one that Node carries (written into `runDir`).
 * @throws StartError where the named one does not exist
 */
export function findCaBundle(named: NamedBundle | undefined, runDir: string): string {
  if (named !== undefined) {
    const { file, by } = named;
    if (existsSync(file)) return path.resolve(file);
    throw new StartError(`${by} is ${file}, which does not exist. Correct it, or leave it out.`);
  }
  const system = SYSTEM_BUNDLES.find((file) => existsSync(file));
  if (system !== undefined) return system;
  const own = path.join(runDir, "ca.pem");
  writeFileSync(own, `${tls.rootCertificates.join("\n")}\n`);
  return own;
}
