/**
 * The Ed25519 key (RFC 8032) that signs checkpoints. Anybody who has it can forge the history: keep
 * it from the folder's readers.
 */
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
} from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import {
  PrivateFileError,
  type PrivateFileOptions,
  readPrivateFile,
} from "../../platform/private-file.ts";
import { AuditError, reasonOf } from "../errors.ts";

export interface SigningKey {
  readonly privateKey: KeyObject;
  readonly publicKey: PublicKey;
}

export interface PublicKey {
  readonly key: KeyObject;
  /** SubjectPublicKeyInfo, PEM. */
  readonly pem: string;
  /** SHA-256 of the key's DER form, which people compare. */
  readonly fingerprint: string;
}

/**
 * Reads the key, or creates it the first time, readable only by this user.
 * @throws AuditError if it cannot be read, is not Ed25519, or is not private to this user
 */
export function loadSigningKey(file: string, options: PrivateFileOptions = {}): SigningKey {
  const text = readKey(file, options) ?? makeKey(file, options);
  let privateKey: KeyObject;
  try {
    privateKey = createPrivateKey(text);
  } catch {
    throw new AuditError(
      `The audit key ${file} is not a private key in PEM form. Restore the previous key ` +
        "from its backup.",
    );
  }
  if (privateKey.asymmetricKeyType !== "ed25519")
    throw new AuditError(
      `The audit key ${file} is not an Ed25519 key: create one with openssl genpkey ` +
        "-algorithm ed25519.",
    );
  return { privateKey, publicKey: describe(createPublicKey(privateKey)) };
}

/** Returns undefined if there is no key. @throws AuditError */
function readKey(file: string, options: PrivateFileOptions): string | undefined {
  try {
    return readPrivateFile(file, "The audit key", options).toString("utf8");
  } catch (error) {
    if (error instanceof PrivateFileError) throw new AuditError(error.message);
    if (reasonOf(error) === "ENOENT") return undefined;
    throw new AuditError(`The audit key ${file} cannot be read (${reasonOf(error)}).`);
  }
}

function makeKey(file: string, options: PrivateFileOptions): string {
  const pem = generateKeyPairSync("ed25519")
    .privateKey.export({ type: "pkcs8", format: "pem" })
    .toString();
  try {
    mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
    writeFileSync(file, pem, { mode: 0o600, flag: "wx", flush: true });
    return pem;
  } catch (error) {
    // Another process was faster: its key is used.
    const theirs = reasonOf(error) === "EEXIST" ? readKey(file, options) : undefined;
    if (theirs !== undefined) return theirs;
    throw new AuditError(`The audit key ${file} cannot be created (${reasonOf(error)}).`);
  }
}

/** @throws AuditError if it is not an Ed25519 public key */
export function parsePublicKey(pem: string, where: string): PublicKey {
  let key: KeyObject;
  try {
    key = createPublicKey(pem);
  } catch {
    throw new AuditError(`${where} is not a public key in PEM form.`);
  }
  if (key.asymmetricKeyType !== "ed25519")
    throw new AuditError(`${where} is not an Ed25519 public key.`);
  return describe(key);
}

/** @throws AuditError if there is no key */
export function loadPublicKey(file: string): PublicKey {
  let pem: string;
  try {
    pem = readFileSync(file, "utf8");
  } catch (error) {
    throw new AuditError(`The public key ${file} cannot be read (${reasonOf(error)}).`);
  }
  return parsePublicKey(pem, `The file ${file}`);
}

function describe(key: KeyObject): PublicKey {
  const fingerprint = createHash("sha256")
    .update(key.export({ type: "spki", format: "der" }))
    .digest("hex");
  return { key, pem: key.export({ type: "spki", format: "pem" }).toString(), fingerprint };
}
