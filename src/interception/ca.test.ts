import { createPrivateKey, randomBytes, X509Certificate } from "node:crypto";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CertificateAuthority, DEFAULT_VALIDITY, type Validity } from "./ca.ts";
import { generateKeyPair, pem, signAuthority, signServer } from "./certificate.ts";
import { FakeClock } from "../platform/testing.ts";

const START = Date.UTC(2026, 5, 1, 12);
const DAY_MS = 86_400_000;
const names = { hosts: ["api.github.com"], patterns: ["*.amazonaws.com"] };

let dir: string;

beforeAll(() => {
  dir = mkdtempSync(path.join(os.tmpdir(), "svc-test-"));
});

afterAll(() => {
  rmSync(dir, { recursive: true, force: true });
});

function authority(clock = new FakeClock(START), validity?: Validity): CertificateAuthority {
  return new CertificateAuthority({
    clock,
    random: randomBytes,
    names,
    ...(validity === undefined ? {} : { validity }),
  });
}

/** Returns OpenSSL's verdict on a leaf at a time, in its own words, `OK` among them. */
function verify(trustPem: string, leafPem: string, host: string, at: number): string {
  const [trust, leaf] = [path.join(dir, "trust.pem"), path.join(dir, "leaf.pem")];
  writeFileSync(trust, trustPem);
  writeFileSync(leaf, leafPem);
  const args = [
    "verify",
    "-x509_strict",
    "-CAfile",
    trust,
    "-no-CApath",
    "-purpose",
    "sslserver",
    "-verify_hostname",
    host,
    "-attime",
    String(Math.floor(at / 1000)),
    leaf,
  ];
  try {
    return execFileSync("openssl", args, { encoding: "utf8", stdio: "pipe" });
  } catch (error) {
    return (error as { stderr: string }).stderr;
  }
}

describe("minting", () => {
  test("makes a certificate that OpenSSL takes, for that name alone", () => {
    const ca = authority();
    const minted = ca.mint("API.github.com");
    expect(
      verify(ca.certificatesPem, minted?.certificateChainPem ?? "", "api.github.com", START),
    ).toContain(": OK");
    expect(
      verify(ca.certificatesPem, minted?.certificateChainPem ?? "", "github.com", START),
    ).toContain("hostname mismatch");
    const leaf = new X509Certificate(minted?.certificateChainPem ?? "");
    expect(leaf.subjectAltName).toBe("DNS:api.github.com");
    expect(leaf.ca).toBe(false);
    expect(leaf.checkPrivateKey(createPrivateKey(minted?.privateKeyPem ?? ""))).toBe(true);
    expect(leaf.validToDate.getTime()).toBe(minted?.notAfter);
    expect(minted?.notAfter).toBe(START + DEFAULT_VALIDITY.leafMs);
    expect(minted?.privateKeyPem).toMatch(/^-----BEGIN PRIVATE KEY-----/);
  });

  test("by pattern, for as deep a name as there is", () => {
    const ca = authority();
    const name = `${"a".repeat(63)}.${"b".repeat(63)}.${"c".repeat(63)}.s3.amazonaws.com`;
    expect(
      verify(ca.certificatesPem, ca.mint(name)?.certificateChainPem ?? "", name, START),
    ).toContain(": OK");
  });

  test.each([
    "",
    "github.com",
    "amazonaws.com",
    "*.amazonaws.com",
    "api.github.com.",
    "127.0.0.1",
    "api.github.com\0.amazonaws.com",
  ])("not for %j", (name) => {
    expect(authority().mint(name)).toBeUndefined();
  });

  test("gives the same until two thirds of its life, and each name and renewal a key of its own", () => {
    const clock = new FakeClock(START);
    const ca = authority(clock);
    const first = ca.mint("api.github.com");
    expect(first?.renewAt).toBe(START + 16 * 3_600_000);
    clock.advance(16 * 3_600_000 - 1);
    expect(ca.mint("Api.GitHub.com")).toEqual(first);
    clock.advance(1);
    const second = ca.mint("api.github.com");
    expect(second?.notAfter).toBe(START + 40 * 3_600_000);
    const keys = [first, second, ca.mint("s3.amazonaws.com")].map(
      (minted) => minted?.privateKeyPem,
    );
    expect(new Set(keys).size).toBe(3);
    const serials = [first, second].map(
      (minted) => new X509Certificate(minted?.certificateChainPem ?? "").serialNumber,
    );
    expect(new Set(serials).size).toBe(2);
  });

  test("keeps a bounded number, the ones last asked for", () => {
    const ca = authority();
    const kept = ca.mint("kept.amazonaws.com");
    const dropped = ca.mint("dropped.amazonaws.com");
    for (let index = 0; index < 999; index++) {
      ca.mint("kept.amazonaws.com");
      ca.mint(`b${index}.amazonaws.com`);
    }
    expect(ca.mint("kept.amazonaws.com")).toEqual(kept);
    expect(ca.mint("dropped.amazonaws.com")).not.toEqual(dropped);
  });

  test("holds when the clock is set back an hour, and makes anew what a greater step made one of the future", () => {
    const clock = new FakeClock(START);
    const ca = authority(clock);
    const first = ca.mint("api.github.com");
    clock.set(START - 3_600_000);
    expect(ca.mint("api.github.com")).toEqual(first);
    expect(
      verify(ca.certificatesPem, first?.certificateChainPem ?? "", "api.github.com", clock.now()),
    ).toContain(": OK");
    clock.set(START - 10 * DAY_MS);
    const anew = ca.mint("api.github.com");
    expect(
      verify(ca.certificatesPem, anew?.certificateChainPem ?? "", "api.github.com", clock.now()),
    ).toContain(": OK");
  });
});

describe("the authority", () => {
  test("can sign for the bound names, and nothing else", () => {
    const ca = authority();
    const text = execFileSync("openssl", ["x509", "-noout", "-text"], {
      input: ca.certificatesPem,
      encoding: "utf8",
    });
    expect(text).toMatch(/Basic Constraints: critical\s+CA:TRUE, pathlen:0/);
    expect(text).toMatch(/Key Usage: critical\s+Certificate Sign\n/);
    expect(text).toMatch(
      /Name Constraints: critical\s+Permitted:\s+DNS:amazonaws.com\s+DNS:api.github.com\s+Excluded:\s+IP:0\.0\.0\.0\/0\.0\.0\.0\s+IP:0:0:0:0:0:0:0:0\/0:0:0:0:0:0:0:0/,
    );
    expect(text).toContain("prime256v1");
  });

  test("whose key is stolen is still held to its names", () => {
    const own = generateKeyPair();
    const server = generateKeyPair();
    const [notBefore, notAfter, keyId, commonName] = [
      START - 1000,
      START + DAY_MS,
      randomBytes(20),
      "CA",
    ];
    const ca = pem(
      signAuthority({
        ...own,
        keyId,
        commonName,
        domains: ["amazonaws.com"],
        notBefore,
        notAfter,
        random: randomBytes,
      }),
    );
    const leaf = (name: string): string =>
      pem(
        signServer({
          publicKey: server.publicKey,
          name,
          issuer: { commonName, keyId, privateKey: own.privateKey },
          notBefore,
          notAfter,
          random: randomBytes,
        }),
      );
    expect(verify(ca, leaf("s3.amazonaws.com"), "s3.amazonaws.com", START)).toContain(": OK");
    expect(verify(ca, leaf("bank.example"), "bank.example", START)).toContain(
      "permitted subtree violation",
    );
    expect(verify(ca, leaf("xamazonaws.com"), "xamazonaws.com", START)).toContain(
      "permitted subtree violation",
    );
  });

  test("is for good names, and with none of them for nobody's", () => {
    const make = (hosts: string[]): CertificateAuthority =>
      new CertificateAuthority({
        clock: new FakeClock(START),
        random: randomBytes,
        names: { hosts, patterns: [] },
      });
    expect(() => make(["10.0.0.1"])).toThrow('"10.0.0.1" is not a host name');
    const ca = make([]);
    expect(
      execFileSync("openssl", ["x509", "-noout", "-text"], {
        input: ca.certificatesPem,
        encoding: "utf8",
      }),
    ).toMatch(/Permitted:\s+DNS:invalid\s+Excluded:/);
    for (const name of ["", "invalid", "a.invalid", "example.com"])
      expect(ca.mint(name)).toBeUndefined();
  });

  test("looks at no clock once it is closed", () => {
    const clock = new FakeClock(START);
    const ca = authority(clock);
    expect(clock.pending).toHaveLength(1);
    ca.close();
    expect(clock.pending).toEqual([]);
  });
});

describe("rotation", () => {
  const validity: Validity = { authorityMs: 30 * DAY_MS, leafMs: DAY_MS, slackMs: DAY_MS };
  const certificates = (text: string): string[] =>
    text.match(/-----BEGIN[^]+?-----END CERTIFICATE-----\n/g) ?? [];

  test("is told when the certificates change, and only then", () => {
    const clock = new FakeClock(START);
    const ca = authority(clock, validity);
    const changes: number[] = [];
    ca.onChange(() => changes.push(certificates(ca.certificatesPem).length));
    clock.advance(20 * DAY_MS - 1);
    expect(changes).toEqual([]);
    clock.advance(3_600_000);
    expect(changes).toEqual([2]);
    clock.advance(11 * DAY_MS);
    expect(changes).toEqual([2, 1]);
    const first = ca.certificatesPem;
    clock.advance(365 * DAY_MS);
    expect(changes.length).toBeGreaterThan(30);
    expect(ca.certificatesPem).not.toContain(first);
    expect(certificates(ca.certificatesPem).length).toBeLessThanOrEqual(2);
  });

  test(
    "fails no handshake: at each hour of half a year, for clients as old as a third of an authority's life",
    { timeout: 300_000 },
    () => {
      const clock = new FakeClock(START);
      const ca = authority(clock, validity);
      const trusts: string[] = [];
      for (let hour = 0; hour < 24 * 180; hour++) {
        trusts.push(ca.certificatesPem);
        const served = new X509Certificate(ca.mint("api.github.com")?.certificateChainPem ?? "");
        expect(served.validFromDate.getTime()).toBeLessThan(clock.now());
        expect(served.validToDate.getTime()).toBeGreaterThan(clock.now());
        // Valid from now, and from nine days ago.
        for (const trust of [trusts[hour], trusts[hour - 9 * 24] ?? trusts[0]] as string[]) {
          const issuer = certificates(trust)
            .map((one) => new X509Certificate(one))
            .find((one) => served.checkIssued(one));
          expect(
            issuer !== undefined &&
              served.verify(issuer.publicKey) &&
              issuer.validToDate.getTime() > clock.now(),
          ).toBe(true);
        }
        clock.advance(3_600_000);
      }
    },
  );

  test("has a leaf end no later than its authority", () => {
    const clock = new FakeClock(START);
    const ca = authority(clock, { authorityMs: DAY_MS, leafMs: 30 * DAY_MS, slackMs: 0 });
    expect(ca.mint("api.github.com")?.notAfter).toBe(START + DAY_MS);
  });

  test("after the machine slept through it", () => {
    const clock = new FakeClock(START);
    const ca = authority(clock, validity);
    clock.set(START + 100 * DAY_MS);
    const minted = ca.mint("api.github.com");
    expect(
      verify(ca.certificatesPem, minted?.certificateChainPem ?? "", "api.github.com", clock.now()),
    ).toContain(": OK");
    expect(certificates(ca.certificatesPem)).toHaveLength(1);
  });
});
