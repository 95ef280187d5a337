/** X.509 version 3 certificates (RFC 5280), signed by ECDSA with SHA-256 over P-256. */
import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { AsnConvert, OctetString } from "@peculiar/asn1-schema";
import * as x509 from "@peculiar/asn1-x509";

/** Algorithm identifier of ANSI X9.62: https://www.rfc-editor.org/rfc/rfc5758#section-3.2 */
const ECDSA_WITH_SHA256 = "1.2.840.10045.4.3.2";
const COMMON_NAME = "2.5.4.3";
const SERVER_AUTH = "1.3.6.1.5.5.7.3.1";
const SERIAL_BYTES = 16;

export interface KeyPair {
  readonly publicKey: KeyObject;
  readonly privateKey: KeyObject;
}

export function generateKeyPair(): KeyPair {
  return generateKeyPairSync("ec", { namedCurve: "P-256" });
}

/** Properties common to both kinds. Times are milliseconds since the epoch. */
interface Terms {
  readonly publicKey: KeyObject;
  readonly notBefore: number;
  readonly notAfter: number;
  readonly random: (bytes: number) => Uint8Array;
}

/**
 * Returns a self-signed authority that may sign only server certificates under `domains`.
 * @returns DER
 */
export function signAuthority(
  terms: Terms & {
    readonly commonName: string;
    readonly domains: readonly string[];
    readonly keyId: Uint8Array;
    readonly privateKey: KeyObject;
  },
): Buffer {
  const subtree = (base: Partial<x509.GeneralName>): x509.GeneralSubtree =>
    new x509.GeneralSubtree({ base: new x509.GeneralName(base) });
  const constraints = new x509.NameConstraints({
    permittedSubtrees: new x509.GeneralSubtrees(
      terms.domains.map((dNSName) => subtree({ dNSName })),
    ),
    // A name form without constraints is unrestricted: addresses are therefore excluded, in both
    // families.
    excludedSubtrees: new x509.GeneralSubtrees([
      subtree({ iPAddress: "0.0.0.0/0.0.0.0" }),
      subtree({ iPAddress: "::/::" }),
    ]),
  });
  return signed(terms, {
    issuer: terms.commonName,
    subject: terms.commonName,
    signingKey: terms.privateKey,
    extensions: [
      extension(
        x509.id_ce_basicConstraints,
        true,
        new x509.BasicConstraints({ cA: true, pathLenConstraint: 0 }),
      ),
      extension(x509.id_ce_keyUsage, true, new x509.KeyUsage(x509.KeyUsageFlags.keyCertSign)),
      extension(x509.id_ce_extKeyUsage, false, new x509.ExtendedKeyUsage([SERVER_AUTH])),
      extension(x509.id_ce_nameConstraints, true, constraints),
      extension(x509.id_ce_subjectKeyIdentifier, false, new x509.SubjectKeyIdentifier(terms.keyId)),
    ],
  });
}

/**
 * Returns a server certificate for one name. The name is only in the subjectAltName, which every
 * current client reads: a common name is limited to 64 characters. @returns DER
 */
export function signServer(
  terms: Terms & {
    readonly name: string;
    readonly issuer: {
      readonly commonName: string;
      readonly keyId: Uint8Array;
      readonly privateKey: KeyObject;
    };
  },
): Buffer {
  const { name, issuer } = terms;
  return signed(terms, {
    issuer: issuer.commonName,
    subject: "Svc sidecar",
    signingKey: issuer.privateKey,
    extensions: [
      extension(x509.id_ce_basicConstraints, true, new x509.BasicConstraints({ cA: false })),
      extension(x509.id_ce_keyUsage, true, new x509.KeyUsage(x509.KeyUsageFlags.digitalSignature)),
      extension(x509.id_ce_extKeyUsage, false, new x509.ExtendedKeyUsage([SERVER_AUTH])),
      extension(
        x509.id_ce_subjectAltName,
        false,
        new x509.SubjectAlternativeName([new x509.GeneralName({ dNSName: name })]),
      ),
      extension(
        x509.id_ce_authorityKeyIdentifier,
        false,
        new x509.AuthorityKeyIdentifier({ keyIdentifier: new x509.KeyIdentifier(issuer.keyId) }),
      ),
    ],
  });
}

export function pem(der: Uint8Array): string {
  const lines =
    Buffer.from(der)
      .toString("base64")
      .match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`;
}

interface Content {
  readonly issuer: string;
  readonly subject: string;
  readonly signingKey: KeyObject;
  readonly extensions: readonly x509.Extension[];
}

function signed({ publicKey, notBefore, notAfter, random }: Terms, content: Content): Buffer {
  const algorithm = new x509.AlgorithmIdentifier({ algorithm: ECDSA_WITH_SHA256 });
  const tbsCertificate = new x509.TBSCertificate({
    version: x509.Version.v3,
    serialNumber: serialNumber(random),
    signature: algorithm,
    issuer: distinguishedName(content.issuer),
    subject: distinguishedName(content.subject),
    validity: new x509.Validity({ notBefore: new Date(notBefore), notAfter: new Date(notAfter) }),
    subjectPublicKeyInfo: AsnConvert.parse(
      publicKey.export({ type: "spki", format: "der" }),
      x509.SubjectPublicKeyInfo,
    ),
    extensions: new x509.Extensions([...content.extensions]),
  });
  const bytes = Buffer.from(AsnConvert.serialize(tbsCertificate));
  const signature = sign("sha256", bytes, content.signingKey);
  return Buffer.from(
    AsnConvert.serialize(
      new x509.Certificate({
        tbsCertificate,
        signatureAlgorithm: algorithm,
        signatureValue: new Uint8Array(signature).buffer,
      }),
    ),
  );
}

function extension(extnID: string, critical: boolean, value: object): x509.Extension {
  return new x509.Extension({
    extnID,
    critical,
    extnValue: new OctetString(AsnConvert.serialize(value)),
  });
}

function distinguishedName(commonName: string): x509.Name {
  const attribute = new x509.AttributeTypeAndValue({
    type: COMMON_NAME,
    value: new x509.AttributeValue({ utf8String: commonName }),
  });
  return new x509.Name([new x509.RelativeDistinguishedName([attribute])]);
}

/** Random, positive, never zero, and of fixed length (RFC 5280, section 4.1.2.2). */
function serialNumber(random: (bytes: number) => Uint8Array): ArrayBuffer {
  const bytes = new Uint8Array(random(SERIAL_BYTES));
  bytes[0] = ((bytes[0] as number) & 0x3f) | 0x40;
  return bytes.buffer;
}
