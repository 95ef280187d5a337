/**
 * Google as clients see it: the token endpoint for service accounts, and Cloud Storage's JSON API
 * in memory. https://developers.google.com/identity/protocols/oauth2/service-account
 * https://cloud.google.com/storage/docs/json_api/v1/objects
 */
import { createHash, randomUUID, verify, type KeyObject } from "node:crypto";
import type http2 from "node:http2";
import type { Received } from "./services.ts";

export interface GoogleAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer | object;
}

interface StoredObject {
  readonly content: Buffer;
  readonly contentType: string;
}

export class GoogleServer {
  /** By `<bucket>/<object>`. */
  readonly objects = new Map<string, StoredObject>();
  /** Access tokens that were issued. */
  readonly issued = new Set<string>();
  readonly #email: string;
  readonly #key: KeyObject;
  readonly #uploads = new Map<string, { readonly name: string; readonly contentType: string }>();

  constructor(email: string, publicKey: KeyObject) {
    this.#email = email;
    this.#key = publicKey;
  }

  serve(request: Received, response: http2.Http2ServerResponse): void {
    const { status, headers = {}, body } = this.#answer(request);
    const text = body === undefined ? "" : JSON.stringify(body);
    const bytes = Buffer.isBuffer(body) ? body : Buffer.from(text);
    response.writeHead(status, {
      "content-type": "application/json; charset=UTF-8",
      "content-length": String(bytes.length),
      ...headers,
    });
    response.end(request.method === "HEAD" ? "" : bytes);
  }

  #answer(request: Received): GoogleAnswer {
    if (request.host === "oauth2.googleapis.com") return this.#token(request);
    const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1];
    if (token === undefined || !this.issued.has(token))
      return fault(401, "authError", "Invalid Credentials");
    if (request.host !== "storage.googleapis.com") return fault(404, "notFound", "Not Found");
    return this.#storage(request);
  }

  /** RFC 7523: a signed JWT for an access token. */
  #token({ method, url, body }: Received): GoogleAnswer {
    const form = new URLSearchParams(body.toString("utf8"));
    const [header = "", claims = "", signature = ""] = (form.get("assertion") ?? "").split(".");
    const isOurs =
      method === "POST" &&
      url === "/token" &&
      form.get("grant_type") === "urn:ietf:params:oauth:grant-type:jwt-bearer" &&
      verify(
        "RSA-SHA256",
        Buffer.from(`${header}.${claims}`),
        this.#key,
        Buffer.from(signature, "base64url"),
      );
    const { iss, aud, exp, iat } = (
      isOurs ? JSON.parse(Buffer.from(claims, "base64url").toString("utf8")) : {}
    ) as { iss?: string; aud?: string; exp?: number; iat?: number };
    const now = Date.now() / 1000;
    const isValid =
      iss === this.#email &&
      aud === "https://oauth2.googleapis.com/token" &&
      (exp ?? 0) > now &&
      (exp ?? 0) - (iat ?? 0) <= 3_600 &&
      Math.abs(now - (iat ?? 0)) < 300;
    if (!isValid)
      return {
        status: 400,
        body: { error: "invalid_grant", error_description: "Invalid JWT Signature." },
      };
    const token = `ya29.${randomUUID()}`;
    this.issued.add(token);
    return {
      status: 200,
      body: { access_token: token, expires_in: 3_599, token_type: "Bearer" },
    };
  }

  #storage(request: Received): GoogleAnswer {
    const url = new URL(request.url, "https://storage.googleapis.com");
    const upload = /^\/upload\/storage\/v1\/b\/([^/]+)\/o$/.exec(url.pathname);
    if (upload !== null) return this.#upload(request, upload[1] ?? "", url.searchParams);
    const copy = /^\/storage\/v1\/b\/([^/]+)\/o\/([^/]+)\/rewriteTo\/b\/([^/]+)\/o\/([^/]+)$/
      .exec(request.url.split("?")[0] ?? "")
      ?.slice(1)
      .map((each) => decodeURIComponent(each));
    if (copy !== undefined && request.method === "POST") {
      const [from = "", source = "", to = "", target = ""] = copy;
      const found = this.objects.get(`${from}/${source}`);
      if (found === undefined) return fault(404, "notFound", `No such object: ${from}/${source}`);
      this.objects.set(`${to}/${target}`, found);
      const size = String(found.content.length);
      return {
        status: 200,
        body: {
          kind: "storage#rewriteResponse",
          done: true,
          objectSize: size,
          totalBytesRewritten: size,
          resource: resource(to, target, found),
        },
      };
    }
    const [, bucket = "", name] =
      /^\/storage\/v1\/b\/([^/]+)\/o(?:\/([^/]+))?$/.exec(request.url.split("?")[0] ?? "") ?? [];
    if (bucket === "") return fault(404, "notFound", "Not Found");
    if (name === undefined)
      return {
        status: 200,
        body: {
          kind: "storage#objects",
          items: [...this.objects]
            .filter(([key]) => key.startsWith(`${bucket}/`))
            .map(([key, object]) => resource(bucket, key.slice(bucket.length + 1), object))
            .toSorted((a, b) => (a.name < b.name ? -1 : 1)),
        },
      };
    return this.#object(request.method, bucket, decodeURIComponent(name), url.searchParams);
  }

  #object(method: string, bucket: string, name: string, query: URLSearchParams): GoogleAnswer {
    const found = this.objects.get(`${bucket}/${name}`);
    if (found === undefined) return fault(404, "notFound", `No such object: ${bucket}/${name}`);
    if (method === "DELETE") {
      this.objects.delete(`${bucket}/${name}`);
      return { status: 204 };
    }
    if (query.get("alt") !== "media") return { status: 200, body: resource(bucket, name, found) };
    const { crc32c, md5Hash } = resource(bucket, name, found);
    return {
      status: 200,
      headers: {
        "content-type": found.contentType,
        "x-goog-hash": `crc32c=${crc32c},md5=${md5Hash}`,
      },
      body: found.content,
    };
  }

  /** https://cloud.google.com/storage/docs/uploads-downloads#uploads */
  #upload(request: Received, bucket: string, query: URLSearchParams): GoogleAnswer {
    const id = query.get("upload_id");
    if (id !== null) {
      const begun = this.#uploads.get(id);
      if (begun === undefined) return fault(404, "notFound", "No such upload");
      return this.#put(bucket, begun.name, request.body, begun.contentType);
    }
    if (query.get("uploadType") === "resumable") {
      const { name, contentType } = (
        request.body.length === 0 ? {} : JSON.parse(request.body.toString("utf8"))
      ) as { name?: string; contentType?: string };
      const upload = randomUUID();
      this.#uploads.set(upload, {
        name: name ?? query.get("name") ?? "",
        contentType:
          contentType ??
          String(request.headers["x-upload-content-type"] ?? "application/octet-stream"),
      });
      const place = `https://storage.googleapis.com/upload/storage/v1/b/${bucket}/o`;
      return {
        status: 200,
        headers: { location: `${place}?uploadType=resumable&upload_id=${upload}` },
      };
    }
    const boundary = /boundary="?([^";]+)/.exec(request.headers["content-type"] ?? "")?.[1];
    const [, metadata = "", media = ""] = request.body
      .toString("latin1")
      .split(`--${boundary ?? ""}`)
      .map((part) => part.slice(part.indexOf("\r\n\r\n") + 4).replace(/\r\n$/, ""));
    const { name, contentType } = JSON.parse(Buffer.from(metadata, "latin1").toString("utf8")) as {
      name?: string;
      contentType?: string;
    };
    const content = Buffer.from(media, "latin1");
    return this.#put(bucket, name ?? query.get("name") ?? "", content, contentType);
  }

  #put(
    bucket: string,
    name: string,
    content: Buffer,
    contentType = "application/octet-stream",
  ): GoogleAnswer {
    const object = { content, contentType };
    this.objects.set(`${bucket}/${name}`, object);
    return { status: 200, body: resource(bucket, name, object) };
  }
}

/** https://cloud.google.com/storage/docs/json_api/v1/objects#resource */
interface ObjectResource {
  readonly kind: "storage#object";
  readonly id: string;
  readonly bucket: string;
  readonly name: string;
  readonly generation: string;
  readonly metageneration: string;
  readonly contentType: string;
  readonly size: string;
  readonly md5Hash: string;
  readonly crc32c: string;
}

function resource(
  bucket: string,
  name: string,
  { content, contentType }: StoredObject,
): ObjectResource {
  return {
    kind: "storage#object",
    id: `${bucket}/${name}/1`,
    bucket,
    name,
    generation: "1",
    metageneration: "1",
    contentType,
    size: String(content.length),
    md5Hash: createHash("md5").update(content).digest("base64"),
    crc32c: crc32c(content),
  };
}

/** Google's form of errors. https://cloud.google.com/storage/docs/json_api/v1/status-codes */
function fault(code: number, reason: string, message: string): GoogleAnswer {
  return {
    status: code,
    body: { error: { code, message, errors: [{ message, domain: "global", reason }] } },
  };
}

const CRC32C = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0x82f63b78 : value >>> 1;
  return value;
});

/** RFC 3720, appendix B.4: Castagnoli's polynomial; big-endian in base64, as Google has it. */
function crc32c(content: Buffer): string {
  let value = 0xffffffff;
  for (const byte of content) value = (CRC32C[(value ^ byte) & 0xff] as number) ^ (value >>> 8);
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE((value ^ 0xffffffff) >>> 0);
  return bytes.toString("base64");
}
