/** Trust files for clients: files of the shared volume, replaced when the authority rotates. */
import { randomBytes, X509Certificate } from "node:crypto";
import {
  chmodSync,
  closeSync,
  fchmodSync,
  fsyncSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import path from "node:path";
import { pem } from "./certificate.ts";
import { TRUST_FILES } from "./trust-environment.ts";
import { trustStore } from "./trust-store.ts";

export interface Trust {
  /** Certificates of the sidecar's authorities: {@link CertificateAuthority.certificatesPem}. */
  readonly authorities: string;
  /** The system's bundle, as text. Everything in it that is not a certificate is dropped. */
  readonly systemRoots: string;
}

/**
 * Writes the trust folder's files, readable by everybody. Each file is replaced atomically, so that
 * a reader finds the old or the new one. Only certificates are written: they are parsed and
 * re-encoded, and all other text is dropped.
 * @throws Error if one of our certificates does not parse; system certificates that do not parse
 * are skipped
 */
export function writeTrust(dir: string, { authorities, systemRoots }: Trust): void {
  mkdirSync(dir, { recursive: true });
  chmodSync(dir, 0o755);
  const own = blocks(authorities).map((block) => new X509Certificate(block).raw);
  const system = blocks(systemRoots).flatMap(parsed);
  const all = [...own, ...system];
  replaceFile(path.join(dir, TRUST_FILES.authority), own.map(pem).join(""));
  replaceFile(path.join(dir, TRUST_FILES.bundle), all.map(pem).join(""));
  const aliases = [
    ...own.map((_, index) => `svc-${index}`),
    ...system.map((_, index) => `root-${index}`),
  ];
  replaceFile(
    path.join(dir, TRUST_FILES.javaStore),
    trustStore(all.map((der, index) => ({ der, alias: aliases[index] as string }))),
  );
}

function blocks(text: string): string[] {
  return text.match(/-----BEGIN CERTIFICATE-----[\sA-Za-z0-9+/=]+-----END CERTIFICATE-----/g) ?? [];
}

function parsed(block: string): Buffer[] {
  try {
    return [new X509Certificate(block).raw];
  } catch {
    return [];
  }
}

function replaceFile(file: string, content: string | Buffer): void {
  const temporary = `${file}.${randomBytes(6).toString("hex")}`;
  try {
    const descriptor = openSync(temporary, "wx", 0o644);
    try {
      // Independent of the umask, because the agent is another user.
      fchmodSync(descriptor, 0o644);
      writeAll(descriptor, Buffer.from(content));
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    renameSync(temporary, file);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}

function writeAll(descriptor: number, bytes: Buffer): void {
  for (let offset = 0; offset < bytes.length;) offset += writeSync(descriptor, bytes, offset);
}
