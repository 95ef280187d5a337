/**
 * Signature Version 4 as AWS verifies it: the canonical request is built from the received request,
 * the signature is computed with the secret key, and the content is compared with its declared
 * hash. https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
 * https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-streaming-trailers.html
 */
import { createHash, createHmac } from "node:crypto";
import { crc32 } from "node:zlib";
import type { Received } from "./services.ts";

export interface AwsKey {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly region: string;
}

/** An error response of AWS. */
export class AwsFault extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

const SKEW_MS = 15 * 60_000;
const UNSIGNED_TRAILER = "STREAMING-UNSIGNED-PAYLOAD-TRAILER";

/**
 * @param now milliseconds since 1970
 * @returns the content, out of its chunks
 * @throws AwsFault
 */
export function verify(
  request: Omit<Received, "headers" | "httpVersion">,
  service: string,
  key: AwsKey,
  now: number,
): Buffer {
  const headers = collected(request);
  const authorization = headers.get("authorization");
  if (/[?&]X-Amz-|[?&](?:Signature|AWSAccessKeyId)=/i.test(request.url))
    throw new AwsFault(400, "InvalidArgument", "Only one auth mechanism allowed");
  if (authorization === undefined)
    throw new AwsFault(
      403,
      "MissingAuthenticationToken",
      "Request is missing Authentication Token",
    );
  const match =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/([^/]+)\/aws4_request, ?SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})$/.exec(
      authorization,
    );
  if (match === null)
    throw new AwsFault(
      400,
      "AuthorizationHeaderMalformed",
      "The authorization header is malformed",
    );
  const [
    ,
    accessKeyId = "",
    day = "",
    region = "",
    scopeService = "",
    signedList = "",
    signature = "",
  ] = match;
  if (accessKeyId !== key.accessKeyId)
    throw new AwsFault(
      403,
      "InvalidAccessKeyId",
      "The AWS Access Key Id you provided does not exist in our records.",
    );
  if (region !== key.region || scopeService !== service)
    throw new AwsFault(
      400,
      "AuthorizationHeaderMalformed",
      `${region}/${scopeService} is not ${key.region}/${service}`,
    );
  const date = headers.get("x-amz-date") ?? "";
  const at = Date.parse(
    date.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, "$1-$2-$3T$4:$5:$6Z"),
  );
  if (!date.startsWith(day) || !(Math.abs(now - at) < SKEW_MS))
    throw new AwsFault(403, "RequestTimeTooSkewed", date);

  const signedNames = signedList.split(";");
  if (signedNames.join(";") !== signedNames.toSorted().join(";"))
    throw new AwsFault(400, "AuthorizationHeaderMalformed", "SignedHeaders are not sorted");
  // Otherwise an intermediary could change the effect of a request.
  const unsigned = [
    "host",
    ...[...headers.keys()].filter((name) => name.startsWith("x-amz-")),
  ].find((name) => !signedNames.includes(name));
  if (unsigned !== undefined)
    throw new AwsFault(
      403,
      "AccessDenied",
      `There were headers present in the request which were not signed: ${unsigned}`,
    );

  const said = headers.get("x-amz-content-sha256");
  if (said === undefined && service === "s3")
    throw new AwsFault(
      400,
      "InvalidRequest",
      "Missing required header for this request: x-amz-content-sha256",
    );
  const mark = request.url.indexOf("?");
  const canonical = [
    request.method,
    canonicalPath(mark < 0 ? request.url : request.url.slice(0, mark), service),
    canonicalQuery(mark < 0 ? "" : request.url.slice(mark + 1)),
    ...signedNames.map(
      (name) => `${name}:${(headers.get(name) ?? "").trim().replaceAll(/ +/g, " ")}`,
    ),
    "",
    signedNames.join(";"),
    said ?? sha256(request.body),
  ].join("\n");
  const toSign = [
    "AWS4-HMAC-SHA256",
    date,
    `${day}/${region}/${service}/aws4_request`,
    sha256(canonical),
  ].join("\n");
  const signing = [day, region, service, "aws4_request"].reduce<string | Buffer>(
    (secret, part) => hmac(secret, part),
    `AWS4${key.secretAccessKey}`,
  );
  if (hmac(signing, toSign).toString("hex") !== signature)
    throw new AwsFault(
      403,
      "SignatureDoesNotMatch",
      "The request signature we calculated does not match the signature you provided.",
    );
  return contentOf(request, said, headers);
}

/**
 * Headers by lower-case name; values of a repeated one are joined by commas. HTTP/2 has the host in
 * a pseudo-header.
 */
function collected({
  host,
  rawHeaders,
}: Pick<Received, "host" | "rawHeaders">): Map<string, string> {
  const headers = new Map([["host", host]]);
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = (rawHeaders[i] ?? "").toLowerCase();
    if (name.startsWith(":") || name === "host") continue;
    const known = headers.get(name);
    const value = rawHeaders[i + 1] ?? "";
    headers.set(name, known === undefined ? value : `${known},${value}`);
  }
  return headers;
}

function contentOf(
  request: Pick<Received, "body">,
  said: string | undefined,
  headers: ReadonlyMap<string, string>,
): Buffer {
  if (said === UNSIGNED_TRAILER) return unchunked(request.body, headers);
  if (said?.startsWith("STREAMING-") === true) throw new AwsFault(501, "NotImplemented", said);
  if (said !== undefined && said !== "UNSIGNED-PAYLOAD" && said !== sha256(request.body))
    throw new AwsFault(
      400,
      "XAmzContentSHA256Mismatch",
      "The provided 'x-amz-content-sha256' header does not match what was computed.",
    );
  checkCrc(headers.get("x-amz-checksum-crc32"), request.body);
  return request.body;
}

/** `aws-chunked`: chunks as in HTTP/1.1, and a trailer with the content's checksum. */
function unchunked(body: Buffer, headers: ReadonlyMap<string, string>): Buffer {
  if (!(headers.get("content-encoding") ?? "").split(/, ?/).includes("aws-chunked"))
    throw new AwsFault(400, "InvalidRequest", "content-encoding is not aws-chunked");
  const parts: Buffer[] = [];
  let at = 0;
  const line = (): string => {
    const end = body.indexOf("\r\n", at);
    if (end < 0) throw new AwsFault(400, "IncompleteBody", "a line has no end");
    const text = body.toString("latin1", at, end);
    at = end + 2;
    return text;
  };
  for (;;) {
    const size = Number.parseInt(line(), 16);
    if (size === 0) break;
    parts.push(body.subarray(at, at + size));
    at += size;
    if (line() !== "")
      throw new AwsFault(400, "IncompleteBody", "a chunk is not as long as it says");
  }
  const content = Buffer.concat(parts);
  if (String(content.length) !== headers.get("x-amz-decoded-content-length"))
    throw new AwsFault(400, "IncompleteBody", "x-amz-decoded-content-length is another");
  const announced = headers.get("x-amz-trailer");
  const [name, value] = line().split(":");
  if (announced === undefined || name !== announced)
    throw new AwsFault(
      400,
      "MalformedTrailerError",
      "the trailer is not the one that was announced",
    );
  if (name === "x-amz-checksum-crc32") checkCrc(value, content);
  return content;
}

function checkCrc(expected: string | undefined, content: Buffer): void {
  if (expected !== undefined && expected.trim() !== base64Crc(content))
    throw new AwsFault(
      400,
      "BadDigest",
      "The CRC32 you specified did not match the calculated checksum.",
    );
}

export function base64Crc(content: Buffer): string {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(crc32(content));
  return bytes.toString("base64");
}

/**
 * S3: decoded once, with each byte that is not unreserved escaped. Others: normalised, and escaped
 * once more.
 */
function canonicalPath(path: string, service: string): string {
  const escaped = path.split("/").map((segment) => escape(unescape(segment)));
  if (service === "s3") return escaped.join("/");
  const kept = escaped.reduce<string[]>(
    (segments, segment) =>
      segment === ".."
        ? segments.slice(0, -1)
        : segment === "." || segment === ""
          ? segments
          : [...segments, segment],
    [],
  );
  const slash = path.endsWith("/") && kept.length > 0 ? "/" : "";
  return `/${kept.map((segment) => escape(Buffer.from(segment))).join("/")}${slash}`;
}

function canonicalQuery(query: string): string {
  if (query === "") return "";
  const pairs = query.split("&").map((pair): [string, string] => {
    const equals = pair.indexOf("=");
    return equals < 0
      ? [escape(unescape(pair)), ""]
      : [escape(unescape(pair.slice(0, equals))), escape(unescape(pair.slice(equals + 1)))];
  });
  const order = (a: string, b: string): number => (a < b ? -1 : Number(a > b));
  return pairs
    .toSorted((a, b) => order(a[0], b[0]) || order(a[1], b[1]))
    .map(([name, value]) => `${name}=${value}`)
    .join("&");
}

/** Bytes: a key need not be UTF-8. */
export function unescape(text: string): Buffer {
  return Buffer.from(
    text.replaceAll(/%([0-9A-Fa-f]{2})/g, (_, hex: string) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    ),
    "latin1",
  );
}

function escape(bytes: Buffer): string {
  return [...bytes]
    .map((byte) =>
      /[A-Za-z0-9._~-]/.test(String.fromCharCode(byte))
        ? String.fromCharCode(byte)
        : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`,
    )
    .join("");
}

function sha256(data: string | Buffer): string {
  return createHash("sha256").update(data).digest("hex");
}

function hmac(key: string | Buffer, data: string): Buffer {
  return createHmac("sha256", key).update(data).digest();
}
