/** The roots against which upstreams' certificates are verified. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import tls from "node:tls";
import { StartError } from "./errors.ts";

/** Locations of the bundle in Linux distributions. */
const SYSTEM_BUNDLES = [
  "/etc/ssl/certs/ca-certificates.crt",
  "/etc/pki/tls/certs/ca-bundle.crt",
  "/etc/ssl/ca-bundle.pem",
  "/etc/ssl/cert.pem",
];

/** A configured bundle, and the option that named it. */
export interface NamedBundle {
  readonly file: string;
  readonly by: string;
}

/**
 * Returns `SVC_CA_FILE`, for `svc up`. `svc run`, which is root, reads nothing from the
 * environment.
 */
export function caBundleOf(env: NodeJS.ProcessEnv): NamedBundle | undefined {
  const file = env["SVC_CA_FILE"] ?? "";
  return file === "" ? undefined : { file, by: "SVC_CA_FILE" };
}

/**
 * Returns the configured bundle, else the system's, else Node's own (written into `runDir`).
 * @throws StartError if the configured one does not exist
 */
export function findCaBundle(named: NamedBundle | undefined, runDir: string): string {
  if (named !== undefined) {
    const { file, by } = named;
    if (existsSync(file)) return path.resolve(file);
    throw new StartError(`${by} is ${file}, which does not exist. Correct it, or omit it.`);
  }
  const system = SYSTEM_BUNDLES.find((file) => existsSync(file));
  if (system !== undefined) return system;
  const own = path.join(runDir, "ca.pem");
  writeFileSync(own, `${tls.rootCertificates.join("\n")}\n`);
  return own;
}

/**
 * Writes the roots of several files as one bundle.
 * @returns the bundle's file, in `runDir`
 * @throws StartError if one of them cannot be read
 */
export function joinBundles(files: readonly string[], runDir: string): string {
  const bundle = path.join(runDir, "roots.pem");
  const texts = files.map((file) => {
    try {
      return readFileSync(file, "utf8");
    } catch (error) {
      const { code = "unknown error" } = error as NodeJS.ErrnoException;
      throw new StartError(`${file} cannot be read (${code}). Mount the certificates there.`);
    }
  });
  writeFileSync(bundle, texts.join("\n"));
  return bundle;
}
