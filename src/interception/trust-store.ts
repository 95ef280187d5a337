/**
 * Certificates as a PKCS#12 file (RFC 7292) that Java accepts as a trust store. It is neither
 * encrypted nor protected by a MAC: it contains no secret, and Java reads it with any password.
 */
import { ContentInfo, id_data } from "@peculiar/asn1-cms";
import * as pkcs12 from "@peculiar/asn1-pfx";
import { AsnConvert, AsnObjectIdentifierConverter, OctetString } from "@peculiar/asn1-schema";
import { DirectoryString } from "@peculiar/asn1-x509";

const FRIENDLY_NAME = "1.2.840.113549.1.9.20";
/**
 * Oracle's attribute: without it, Java treats a certificate as part of a chain and does not trust
 * it.
 */
const TRUSTED_KEY_USAGE = "2.16.840.1.113894.746875.1.1";
const ANY_EXTENDED_KEY_USAGE = "2.5.29.37.0";
const PKCS12_VERSION = 3;

export interface TrustedCertificate {
  /** Unique, and in lower case, because Java compares aliases so. */
  readonly alias: string;
  readonly der: Uint8Array;
}

export function trustStore(certificates: readonly TrustedCertificate[]): Buffer {
  const contents = new pkcs12.SafeContents(certificates.map(bag));
  const safe = new pkcs12.AuthenticatedSafe([data(AsnConvert.serialize(contents))]);
  const pfx = new pkcs12.PFX({
    version: PKCS12_VERSION,
    authSafe: data(AsnConvert.serialize(safe)),
  });
  // Optional in the format, but the package fills in a value.
  delete (pfx as Partial<pkcs12.PFX>).macData;
  return Buffer.from(AsnConvert.serialize(pfx));
}

function bag({ alias, der }: TrustedCertificate): pkcs12.SafeBag {
  const certificate = new pkcs12.CertBag({
    certId: pkcs12.id_x509Certificate,
    certValue: octets(der),
  });
  return new pkcs12.SafeBag({
    bagId: pkcs12.id_certBag,
    bagValue: AsnConvert.serialize(certificate),
    bagAttributes: [
      attribute(FRIENDLY_NAME, AsnConvert.serialize(new DirectoryString({ bmpString: alias }))),
      attribute(
        TRUSTED_KEY_USAGE,
        AsnObjectIdentifierConverter.toASN(ANY_EXTENDED_KEY_USAGE).toBER(),
      ),
    ],
  });
}

function attribute(attrId: string, value: ArrayBuffer): pkcs12.PKCS12Attribute {
  // Its constructor ignores its argument (asn1-pfx 2.11.1).
  return Object.assign(new pkcs12.PKCS12Attribute(), { attrId, attrValues: [value] });
}

function data(content: ArrayBuffer): ContentInfo {
  return new ContentInfo({ contentType: id_data, content: octets(new Uint8Array(content)) });
}

function octets(bytes: Uint8Array): ArrayBuffer {
  return AsnConvert.serialize(new OctetString(new Uint8Array(bytes)));
}
