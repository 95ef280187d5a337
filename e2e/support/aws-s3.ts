/**
 * S3 in memory, for requests with a verified signature. Keys are bytes: paths are not normalised.
 */
import { createHash } from "node:crypto";
import type { AwsAnswer } from "./aws-answer.ts";
import { AwsFault, base64Crc, unescape } from "./aws-verify.ts";
import type { Received } from "./services.ts";

export interface StoredObject {
  readonly content: Buffer;
  readonly type: string | undefined;
  /** Without `aws-chunked`, which is no encoding of the object. */
  readonly encoding: string | undefined;
  readonly metadata: Readonly<Record<string, string>>;
}

interface Target {
  readonly bucket: string;
  /** Empty: the bucket itself. */
  readonly key: string;
  readonly query: ReadonlyMap<string, string>;
}

export class S3 {
  /** By `<bucket>/<key>`. */
  readonly objects = new Map<string, StoredObject>();
  readonly #uploads = new Map<string, Map<number, Buffer>>();
  #nextUpload = 1;

  answer(request: Received, content: Buffer): AwsAnswer {
    const target = targetOf(request);
    const uploadId = target.query.get("uploadId");
    if (uploadId !== undefined) return this.#part(request, target, uploadId, content);
    const kind = `${request.method} ${target.key === "" ? "bucket" : "object"}`;
    if (kind === "POST object" && target.query.has("uploads")) return this.#begin(target);
    if (kind === "POST bucket" && target.query.has("delete"))
      return this.#deleteMany(target, content);
    if (kind === "PUT object")
      return request.headers["x-amz-copy-source"] === undefined
        ? this.#put(request, target, content)
        : this.#copy(request, target);
    if (kind === "GET object" || kind === "HEAD object") return this.#get(request, target);
    if (kind === "DELETE object") {
      this.objects.delete(`${target.bucket}/${target.key}`);
      return { status: 204 };
    }
    if (kind === "GET bucket" && target.query.get("list-type") === "2") return this.#list(target);
    throw new AwsFault(501, "NotImplemented", `${kind} ${[...target.query.keys()].join(",")}`);
  }

  #put({ headers }: Received, { bucket, key }: Target, content: Buffer): AwsAnswer {
    const encoding = (headers["content-encoding"] ?? "")
      .split(/, ?/)
      .filter((each) => each !== "aws-chunked" && each !== "")
      .join(",");
    const metadata = Object.fromEntries(
      Object.entries(headers)
        .filter(([name]) => name.startsWith("x-amz-meta-"))
        .map(([name, value]) => [name, String(value)]),
    );
    this.objects.set(`${bucket}/${key}`, {
      content,
      type: headers["content-type"],
      encoding: encoding === "" ? undefined : encoding,
      metadata,
    });
    return { status: 200, headers: { etag: etag(content) } };
  }

  #found(name: string): StoredObject {
    const found = this.objects.get(name);
    if (found === undefined)
      throw new AwsFault(404, "NoSuchKey", "The specified key does not exist.");
    return found;
  }

  #get({ headers }: Received, { bucket, key }: Target): AwsAnswer {
    const {
      content,
      type = "binary/octet-stream",
      encoding,
      metadata,
    } = this.#found(`${bucket}/${key}`);
    const common = {
      "content-type": type,
      etag: etag(content),
      "last-modified": "Sat, 01 Jan 2000 00:00:00 GMT",
      "accept-ranges": "bytes",
      ...metadata,
      ...(encoding === undefined ? {} : { "content-encoding": encoding }),
    };
    const [, from, to] = /^bytes=(\d+)-(\d*)$/.exec(headers.range ?? "") ?? [];
    if (from !== undefined) {
      const body = content.subarray(Number(from), to === "" ? undefined : Number(to) + 1);
      return {
        status: 206,
        headers: {
          ...common,
          "content-length": String(body.length),
          "content-range": `bytes ${from}-${Number(from) + body.length - 1}/${content.length}`,
        },
        body,
      };
    }
    return {
      status: 200,
      headers: {
        ...common,
        "content-length": String(content.length),
        "x-amz-checksum-crc32": base64Crc(content),
        "x-amz-checksum-type": "FULL_OBJECT",
      },
      body: content,
    };
  }

  #copy({ headers }: Received, { bucket, key }: Target): AwsAnswer {
    const source = unescape(String(headers["x-amz-copy-source"]))
      .toString("utf8")
      .replace(/^\//, "");
    const found = this.#found(source);
    this.objects.set(`${bucket}/${key}`, found);
    return xml(
      `<CopyObjectResult><ETag>${escapeXml(etag(found.content))}</ETag><LastModified>2000-` +
        "01-01T00:00:00.000Z</LastModified></CopyObjectResult>",
    );
  }

  #list({ bucket, query }: Target): AwsAnswer {
    const prefix = query.get("prefix") ?? "";
    const written =
      query.get("encoding-type") === "url"
        ? (key: string): string => encodeURIComponent(key).replaceAll("%2F", "/")
        : escapeXml;
    const keys = [...this.objects]
      .filter(([name]) => name.startsWith(`${bucket}/${prefix}`))
      .map(([name, { content }]) => ({ key: name.slice(bucket.length + 1), content }));
    const contents = keys.map(
      ({ key, content }) =>
        `<Contents><Key>${written(key)}</Key><LastModified>2000-01-01T00:00:00.000Z</` +
        `LastModified><ETag>${escapeXml(etag(content))}</ETag><Size>${content.length}</` +
        "Size><StorageClass>STANDARD</StorageClass></Contents>",
    );
    const encoding = query.has("encoding-type") ? "<EncodingType>url</EncodingType>" : "";
    return xml(
      `<ListBucketResult><Name>${bucket}</Name><Prefix>${written(prefix)}</` +
        `Prefix><KeyCount>${keys.length}</KeyCount><MaxKeys>1000</` +
        `MaxKeys>${encoding}<IsTruncated>false</IsTruncated>${contents.join("")}</` +
        "ListBucketResult>",
    );
  }

  #begin({ bucket, key }: Target): AwsAnswer {
    const id = `upload-${this.#nextUpload++}`;
    this.#uploads.set(id, new Map());
    return xml(
      `<InitiateMultipartUploadResult><Bucket>${bucket}</Bucket><Key>${escapeXml(key)}</` +
        `Key><UploadId>${id}</UploadId></InitiateMultipartUploadResult>`,
    );
  }

  #part(
    { method }: Received,
    { bucket, key, query }: Target,
    uploadId: string,
    content: Buffer,
  ): AwsAnswer {
    const parts = this.#uploads.get(uploadId);
    if (parts === undefined)
      throw new AwsFault(404, "NoSuchUpload", "The specified upload does not exist.");
    if (method === "PUT") {
      parts.set(Number(query.get("partNumber")), content);
      return { status: 200, headers: { etag: etag(content) } };
    }
    this.#uploads.delete(uploadId);
    if (method === "DELETE") return { status: 204 };
    const chosen = [...content.toString("utf8").matchAll(/<PartNumber>(\d+)<\/PartNumber>/g)].map(
      ([, number]) => parts.get(Number(number)),
    );
    if (chosen.includes(undefined))
      throw new AwsFault(
        400,
        "InvalidPart",
        "One or more of the specified parts could not be found.",
      );
    const whole = Buffer.concat(chosen as Buffer[]);
    this.objects.set(`${bucket}/${key}`, {
      content: whole,
      type: undefined,
      encoding: undefined,
      metadata: {},
    });
    return xml(
      `<CompleteMultipartUploadResult><Bucket>${bucket}</Bucket><Key>${escapeXml(key)}</` +
        `Key><ETag>${escapeXml(etag(whole))}</ETag></CompleteMultipartUploadResult>`,
    );
  }

  #deleteMany({ bucket }: Target, content: Buffer): AwsAnswer {
    const keys = [...content.toString("utf8").matchAll(/<Key>([^<]*)<\/Key>/g)].map(
      ([, key = ""]) =>
        key
          .replaceAll("&lt;", "<")
          .replaceAll("&gt;", ">")
          .replaceAll("&quot;", '"')
          .replaceAll("&amp;", "&"),
    );
    for (const key of keys) this.objects.delete(`${bucket}/${key}`);
    return xml(
      "<DeleteResult>" +
        `${keys.map((key) => `<Deleted><Key>${escapeXml(key)}</Key></Deleted>`).join("")}</De` +
        "leteResult>",
    );
  }
}

function targetOf({ host, url }: Received): Target {
  const mark = url.indexOf("?");
  const path = unescape(mark < 0 ? url : url.slice(0, mark)).toString("utf8");
  const pairs =
    mark < 0
      ? []
      : url
          .slice(mark + 1)
          .split("&")
          .map((pair) => pair.split("=").map((part) => unescape(part).toString("utf8")));
  const query = new Map(pairs.map(([name = "", value = ""]) => [name, value]));
  const bucket = /^(.+)\.s3\./.exec(host)?.[1];
  if (bucket !== undefined) return { bucket, key: path.slice(1), query };
  const slash = path.indexOf("/", 1);
  return slash < 0
    ? { bucket: path.slice(1), key: "", query }
    : { bucket: path.slice(1, slash), key: path.slice(slash + 1), query };
}

function xml(body: string): AwsAnswer {
  return {
    status: 200,
    headers: { "content-type": "application/xml" },
    body: `<?xml version="1.0" encoding="UTF-8"?>\n${body}`,
  };
}

function etag(content: Buffer): string {
  return `"${createHash("md5").update(content).digest("hex")}"`;
}

function escapeXml(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&apos;")
    .replaceAll("\r", "&#13;")
    .replaceAll("\n", "&#10;");
}
