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

/**
 * `SVC_CA_FILE` where set, then the system's bundle, then the one that Node carries (written into `runDir`).
 */
export function findCaBundle(env: NodeJS.ProcessEnv, runDir: string): string {
  const named = env["SVC_CA_FILE"];
  if (named !== undefined && named !== "") {
    if (existsSync(named)) return path.resolve(named);
    throw new StartError(`SVC_CA_FILE is ${named}, which does not exist. Correct it, or unset it.`);
  }
  const system = SYSTEM_BUNDLES.find((file) => existsSync(file));
  if (system !== undefined) return system;
  const own = path.join(runDir, "ca.pem");
  writeFileSync(own, `${tls.rootCertificates.join("\n")}\n`);
  return own;
}
