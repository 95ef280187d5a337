import { createHash, generateKeyPairSync } from "node:crypto";
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { AuditError } from "../errors.ts";
import { loadPublicKey, loadSigningKey, parsePublicKey } from "./signing-key.ts";

let dir: string;
let file: string;

beforeEach(() => {
  dir = fs.mkdtempSync(path.join(tmpdir(), "svc-key-"));
  file = path.join(dir, "keys", "audit.pem");
});

afterEach(() => {
  vi.restoreAllMocks();
  syncBuiltinESMExports();
  fs.rmSync(dir, { recursive: true });
});

const PEM = { format: "pem" } as const;
const pemOf = (): string =>
  generateKeyPairSync("ed25519")
    .privateKey.export({ type: "pkcs8", ...PEM })
    .toString();

function put(text: string, mode = 0o600): void {
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, text, { mode });
}

const errorOf = (action: () => unknown): string => {
  try {
    action();
  } catch (error) {
    expect(error).toBeInstanceOf(AuditError);
    return (error as Error).message;
  }
  throw new Error("no error");
};

describe("the signing key", () => {
  test("is made once, for this user alone, and read from then on", () => {
    const made = loadSigningKey(file);
    expect(fs.statSync(file).mode & 0o777).toBe(0o600);
    expect(fs.statSync(path.dirname(file)).mode & 0o777).toBe(0o700);
    const again = loadSigningKey(file);
    expect(again.privateKey.equals(made.privateKey)).toBe(true);
    const der = made.publicKey.key.export({ type: "spki", format: "der" });
    expect(made.publicKey.fingerprint).toBe(createHash("sha256").update(der).digest("hex"));
    expect(again.publicKey.fingerprint).toBe(made.publicKey.fingerprint);
  });

  test("of a faster process is used", () => {
    const theirs = pemOf();
    const mkdir = fs.mkdirSync.bind(fs);
    vi.spyOn(fs, "mkdirSync").mockImplementation((folder, options) => {
      const made = mkdir(folder, options);
      fs.writeFileSync(file, theirs, { mode: 0o600 });
      return made;
    });
    syncBuiltinESMExports();
    const { privateKey } = loadSigningKey(file);
    expect(privateKey.export({ type: "pkcs8", ...PEM })).toBe(theirs);
  });

  test.each<[string, () => void, string]>([
    ["no key", () => put("nothing"), "is not a private key in PEM form"],
    [
      "another kind of key",
      () =>
        put(
          generateKeyPairSync("ec", { namedCurve: "P-256" })
            .privateKey.export({ type: "pkcs8", ...PEM })
            .toString(),
        ),
      "is not an Ed25519 key",
    ],
    ["a key that others may read", () => put(pemOf(), 0o644), "chmod 600"],
    [
      "a folder that cannot be made",
      () => fs.writeFileSync(path.join(dir, "keys"), ""),
      "(ENOTDIR)",
    ],
  ])("%s is an error that names the file", (_name, prepare, why) => {
    prepare();
    const message = errorOf(() => loadSigningKey(file));
    expect(message).toContain(`The audit key ${file}`);
    expect(message).toContain(why);
  });

  test("that can be neither made nor read is an error", () => {
    vi.spyOn(fs, "mkdirSync").mockImplementation(() => {
      throw Object.assign(new Error("no space"), { code: "ENOSPC" });
    });
    syncBuiltinESMExports();
    expect(errorOf(() => loadSigningKey(file))).toBe(
      `The audit key ${file} cannot be created (ENOSPC).`,
    );
  });
});

describe("a public key", () => {
  test("is that of its file", () => {
    const { publicKey } = loadSigningKey(file);
    const other = path.join(dir, "public.pem");
    fs.writeFileSync(other, publicKey.pem);
    expect(loadPublicKey(other).fingerprint).toBe(publicKey.fingerprint);
  });

  test("that is missing, no key or another kind of key is an error", () => {
    const missing = path.join(dir, "missing.pem");
    expect(errorOf(() => loadPublicKey(missing))).toBe(
      `The public key ${missing} cannot be read (ENOENT).`,
    );
    expect(errorOf(() => parsePublicKey("x", "--public-key"))).toBe(
      "--public-key is not a public key in PEM form.",
    );
    const { publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const pem = publicKey.export({ type: "spki", ...PEM }).toString();
    expect(errorOf(() => parsePublicKey(pem, "--public-key"))).toBe(
      "--public-key is not an Ed25519 public key.",
    );
  });
});
