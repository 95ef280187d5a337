/**
 * AWS Signature Version 4, by AWS's own signer. This file ensures that a request is signed as on
 * the wire: the path is raw, and a query keeps repeated names.
 * https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
 */
import { createHash, createHmac, type Hash, type Hmac } from "node:crypto";
import { SignatureV4 } from "@smithy/signature-v4";
import type { Checksum, SourceData } from "@smithy/types";
import type { Parameters } from "../raw-url.ts";

export interface AwsCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken: string | undefined;
}

export interface SignedScope {
  readonly service: string;
  readonly region: string;
  /** S3 signs its paths unchanged; all others normalise and escape them once more. */
  readonly rawPath: boolean;
}

export interface RequestToSign {
  readonly method: string;
  /** As on the wire. */
  readonly path: string;
  /** Decoded. */
  readonly query: Parameters;
  /**
   * Only the headers to be signed, by lower-case name, including `host`. `x-amz-content-sha256`
   * represents the body.
   */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | undefined;
}

/** Returns the headers that the signature added or changed. */
export async function sign(
  request: RequestToSign,
  scope: SignedScope,
  credentials: AwsCredentials,
  now: number,
): Promise<Readonly<Record<string, string>>> {
  const { accessKeyId, secretAccessKey, sessionToken } = credentials;
  const signer = new SignatureV4({
    credentials: {
      accessKeyId,
      secretAccessKey,
      ...(sessionToken === undefined ? {} : { sessionToken }),
    },
    service: scope.service,
    region: scope.region,
    sha256: NodeSha256,
    uriEscapePath: !scope.rawPath,
    applyChecksum: false,
  });
  const signed = await signer.sign(
    {
      method: request.method,
      protocol: "https:",
      hostname: request.headers["host"] ?? "",
      path: request.path,
      query: grouped(request.query),
      headers: { ...request.headers },
      body: request.body,
    },
    { signingDate: new Date(now) },
  );
  return signed.headers;
}

/**
 * The signer expects all values of a name together; a canonical query is sorted, so the order among
 * names does not matter.
 */
function grouped(query: Parameters): Record<string, string | string[]> {
  const groups = new Map<string, string[]>();
  for (const [name, value] of query) groups.set(name, [...(groups.get(name) ?? []), value]);
  return Object.fromEntries(
    [...groups].map(([name, values]) => [
      name,
      values.length === 1 ? (values[0] as string) : values,
    ]),
  );
}

/** The signer's hash interface, implemented by node:crypto. */
class NodeSha256 implements Checksum {
  readonly #secret: SourceData | undefined;
  #hash: Hash | Hmac;

  constructor(secret?: SourceData) {
    this.#secret = secret;
    this.#hash = this.#fresh();
  }

  update(data: Uint8Array): void {
    this.#hash.update(data);
  }

  digest(): Promise<Uint8Array> {
    return Promise.resolve(this.#hash.digest());
  }

  reset(): void {
    this.#hash = this.#fresh();
  }

  #fresh(): Hash | Hmac {
    return this.#secret === undefined
      ? createHash("sha256")
      : createHmac("sha256", bytes(this.#secret));
  }
}

function bytes(data: SourceData): Buffer {
  if (typeof data === "string") return Buffer.from(data);
  return ArrayBuffer.isView(data)
    ? Buffer.from(data.buffer, data.byteOffset, data.byteLength)
    : Buffer.from(data);
}
