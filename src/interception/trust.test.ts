import { execFile, execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import https from "node:https";
import type { AddressInfo } from "node:net";
import os from "node:os";
import path from "node:path";
import tls from "node:tls";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { systemClock } from "../platform/clock.ts";
import { CertificateAuthority } from "./ca.ts";
import { FakeClock } from "../platform/testing.ts";
import { TRUST_VARIABLES, trustEnvironment } from "./trust-environment.ts";
import { trustStore } from "./trust-store.ts";
import { writeTrust } from "./trust.ts";

const run = promisify(execFile);
const systemRoots = tls.rootCertificates.slice(0, 5).join("\n");

let dir: string;
let ca: CertificateAuthority;

beforeAll(() => {
  dir = mkdtempSync(path.join(os.tmpdir(), "svc-test-"));
  ca = new CertificateAuthority({
    clock: systemClock,
    random: randomBytes,
    names: { hosts: ["localhost"], patterns: [] },
  });
});

afterAll(() => {
  ca.close();
  rmSync(dir, { recursive: true, force: true });
});

const certificates = (file: string): number =>
  readFileSync(file, "utf8").split("BEGIN CERTIFICATE").length - 1;

describe("the trust folder", () => {
  test("holds the authority, the bundle with the system's roots, and Java's store, for everybody to read", () => {
    const trust = path.join(dir, "trust");
    const umask = process.umask(0o077);
    try {
      writeTrust(trust, { authorities: ca.certificatesPem, systemRoots });
    } finally {
      process.umask(umask);
    }
    expect(readdirSync(trust).sort()).toEqual(["ca-bundle.crt", "ca.crt", "truststore.p12"]);
    for (const file of readdirSync(trust))
      expect(statSync(path.join(trust, file)).mode & 0o777).toBe(0o644);
    expect(statSync(trust).mode & 0o777).toBe(0o755);
    expect(readFileSync(path.join(trust, "ca.crt"), "utf8")).toBe(ca.certificatesPem);
    expect(certificates(path.join(trust, "ca-bundle.crt"))).toBe(6);
  });

  test("never holds a private key, even where one is in what it was given", () => {
    const trust = path.join(dir, "no-key");
    const { privateKeyPem = "" } = ca.mint("localhost") ?? {};
    writeTrust(trust, {
      authorities: ca.certificatesPem + privateKeyPem,
      systemRoots: `${privateKeyPem}\n# a comment\n${systemRoots}\n${privateKeyPem}`,
    });
    const der = Buffer.from(privateKeyPem.replaceAll(/-----.*-----|\s/g, ""), "base64");
    // The private value: 32 bytes in the middle of PKCS#8.
    const secret = der.subarray(36, 68);
    expect(secret).toHaveLength(32);
    for (const file of readdirSync(trust)) {
      const bytes = readFileSync(path.join(trust, file));
      expect(bytes.toString("latin1")).not.toMatch(/PRIVATE|comment/);
      expect(bytes.includes(secret)).toBe(false);
      expect(bytes.includes(secret.toString("base64").slice(2, -4))).toBe(false);
    }
    expect(certificates(path.join(trust, "ca-bundle.crt"))).toBe(6);
  });

  test("is replaced file by file, whole; nothing is left beside", () => {
    const trust = path.join(dir, "replaced");
    const clock = new FakeClock(Date.now());
    const rotating = new CertificateAuthority({
      clock,
      random: randomBytes,
      names: { hosts: ["localhost"], patterns: [] },
    });
    rotating.onChange(() =>
      writeTrust(trust, { authorities: rotating.certificatesPem, systemRoots }),
    );
    writeTrust(trust, { authorities: rotating.certificatesPem, systemRoots });
    const before = statSync(path.join(trust, "ca.crt")).ino;
    clock.advance(250 * 86_400_000);
    expect(certificates(path.join(trust, "ca.crt"))).toBe(2);
    expect(certificates(path.join(trust, "ca-bundle.crt"))).toBe(7);
    expect(statSync(path.join(trust, "ca.crt")).ino).not.toBe(before);
    expect(readdirSync(trust)).toHaveLength(3);
  });

  test("leaves out what of the system's does not parse, and says so of ours", () => {
    const broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    writeTrust(path.join(dir, "broken"), {
      authorities: ca.certificatesPem,
      systemRoots: `${broken}${systemRoots}`,
    });
    expect(certificates(path.join(dir, "broken/ca-bundle.crt"))).toBe(6);
    expect(() =>
      writeTrust(path.join(dir, "broken"), { authorities: broken, systemRoots }),
    ).toThrow();
  });
});

describe("the environment", () => {
  test("names a file of the folder for each client", () => {
    expect(trustEnvironment("/trust")).toEqual({
      REQUESTS_CA_BUNDLE: "/trust/ca-bundle.crt",
      SSL_CERT_FILE: "/trust/ca-bundle.crt",
      NODE_EXTRA_CA_CERTS: "/trust/ca.crt",
      GIT_SSL_CAINFO: "/trust/ca-bundle.crt",
      CURL_CA_BUNDLE: "/trust/ca-bundle.crt",
      AWS_CA_BUNDLE: "/trust/ca-bundle.crt",
      PIP_CERT: "/trust/ca-bundle.crt",
      DENO_CERT: "/trust/ca.crt",
      CARGO_HTTP_CAINFO: "/trust/ca-bundle.crt",
      GRPC_DEFAULT_SSL_ROOTS_FILE_PATH: "/trust/ca-bundle.crt",
      CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE: "/trust/ca-bundle.crt",
      JAVA_TOOL_OPTIONS:
        "-Djavax.net.ssl.trustStore=/trust/truststore.p12 " +
        "-Djavax.net.ssl.trustStoreType=PKCS12 -Djavax.net.ssl.trustStorePassword=changeit",
    });
  });

  test.each(["trust", "", "/a b", '/a"b', "/a\nb", "/a\\b"])("%j is no folder for it", (folder) => {
    expect(() => trustEnvironment(folder)).toThrow(RangeError);
  });

  test("is what docs/interception.md shows", () => {
    const text = readFileSync(
      path.resolve(import.meta.dirname, "../../docs/interception.md"),
      "utf8",
    );
    const rows = [...text.matchAll(/^\| `([A-Z_]+)` \| `([^`]+)` \| (.+) \|$/gm)].map(
      ([, name, value, readBy]) => ({ name, value, readBy }),
    );
    const environment = trustEnvironment("/trust");
    expect(rows).toEqual(
      TRUST_VARIABLES.map(({ name, readBy }) => ({
        name,
        value: environment[name]?.replaceAll("/trust/", ""),
        readBy,
      })),
    );
  });
});

describe("clients, by their environment alone", () => {
  let server: https.Server;
  let url: string;
  let env: NodeJS.ProcessEnv;
  const withoutTrust = { PATH: process.env["PATH"], HOME: process.env["HOME"] };

  beforeAll(async () => {
    const trust = path.join(dir, "clients");
    writeTrust(trust, { authorities: ca.certificatesPem, systemRoots });
    env = { ...withoutTrust, ...trustEnvironment(trust) };
    // Java sends no server name without a dot: the default certificate is for this case.
    const { certificateChainPem: cert = "", privateKeyPem: key = "" } = ca.mint("localhost") ?? {};
    server = https.createServer(
      {
        cert,
        key,
        SNICallback: (name, done) => {
          const minted = ca.mint(name);
          done(
            null,
            minted === undefined
              ? undefined
              : tls.createSecureContext({
                  cert: minted.certificateChainPem,
                  key: minted.privateKeyPem,
                }),
          );
        },
      },
      (_request, response) => response.end("mediated"),
    );
    await new Promise<void>((resolve) => server.listen(0, "localhost", resolve));
    url = `https://localhost:${(server.address() as AddressInfo).port}/`;
  });

  afterAll(async () => {
    await new Promise((resolve) => server.close(resolve));
  });

  const python =
    "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())";
  const java =
    "public class Get { public static void main(String[] a) throws Exception { " +
    "System.out.println(new String(new java.net.URL(a[0]).openStream().readAllBytes())); } " +
    "}";
  const clients: Record<string, () => readonly [command: string, ...args: string[]]> = {
    curl: () => ["curl", "-sS", url],
    node: () => [
      process.execPath,
      "-e",
      "fetch(process.argv[1]).then((r) => r.text()).then(console.log)",
      url,
    ],
    "python's ssl": () => ["python3", "-c", python, url],
    openssl: () => [
      "openssl",
      "s_client",
      "-connect",
      new URL(url).host,
      "-servername",
      "localhost",
      "-verify_hostname",
      "localhost",
      "-verify_return_error",
      "-brief",
    ],
  };

  test.each(Object.entries(clients))(
    "%s",
    async (_name, command) => {
      const [program, ...args] = command();
      const answer = run(program, args, { env });
      answer.child.stdin?.end();
      const { stdout, stderr } = await answer;
      expect(stdout + stderr).toMatch(/mediated|Verification: OK/);
      const refused = run(program, args, { env: withoutTrust });
      refused.child.stdin?.end();
      await expect(refused).rejects.toThrow();
    },
    20_000,
  );

  // Runs only if Java is available, which is too large to install for two tests.
  if (existsSync("/usr/bin/java") && existsSync("/usr/bin/keytool")) {
    test("java", async () => {
      const source = path.join(dir, "Get.java");
      writeFileSync(source, java);
      expect((await run("java", [source, url], { env })).stdout).toContain("mediated");
      await expect(run("java", [source, url], { env: withoutTrust })).rejects.toThrow(
        /PKIX path building failed/,
      );
    }, 60_000);

    test("keytool: each is trusted, and no key is in it", () => {
      const listed = execFileSync(
        "keytool",
        ["-list", "-keystore", path.join(dir, "clients/truststore.p12"), "-storepass", "changeit"],
        { encoding: "utf8" },
      );
      expect(listed.match(/trustedCertEntry/g)).toHaveLength(6);
      expect(listed).not.toContain("PrivateKeyEntry");
    });
  }
});

test("Java's store is the format that RFC 7292 has, without a MAC", () => {
  const file = path.join(dir, "one.p12");
  writeFileSync(file, trustStore([{ alias: "one", der: Buffer.from("30030101ff", "hex") }]));
  const parsed = execFileSync("openssl", ["asn1parse", "-inform", "DER", "-in", file], {
    encoding: "utf8",
  });
  expect(parsed.split("\n").filter((line) => line.includes("d=1"))).toHaveLength(2);
});
