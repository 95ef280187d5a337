/**
 * Azure as clients see it: Entra's token endpoint, one storage account and one vault in memory.
 * https://learn.microsoft.com/entra/identity-platform/v2-oauth2-client-creds-grant-flow
 * https://learn.microsoft.com/rest/api/storageservices/blob-service-rest-api
 * https://learn.microsoft.com/rest/api/keyvault/secrets/operation-groups
 */
import { randomUUID } from "node:crypto";
import type http2 from "node:http2";
import { escapeXml } from "../../src/providers/xml-text.ts";
import type { Received } from "./services.ts";

export interface AzureApplication {
  readonly tenantId: string;
  readonly clientId: string;
  readonly clientSecret: string;
}

interface AzureAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer | string;
}

interface StoredBlob {
  readonly content: Buffer;
  readonly metadata: Readonly<Record<string, string>>;
}

const STORAGE = "https://storage.azure.com/.default";
const VAULT = "https://vault.azure.net/.default";
const ETAG = { etag: '"0x1"', "last-modified": "Sun, 22 Nov 2026 10:00:00 GMT" };
const VERSION = "0123456789abcdef0123456789abcdef";

export class AzureServer {
  /** By `<container>/<blob>`. */
  readonly blobs = new Map<string, StoredBlob>();
  readonly secrets = new Map<string, string>();
  /** Audience by issued token. */
  readonly issued = new Map<string, string>();
  readonly #application: AzureApplication;
  readonly #blocks = new Map<string, Buffer>();

  constructor(application: AzureApplication) {
    this.#application = application;
  }

  serve(request: Received, response: http2.Http2ServerResponse): void {
    const { status, headers = {}, body = "" } = this.#answer(request);
    response.writeHead(status, {
      "content-length": String(Buffer.byteLength(body)),
      "x-ms-request-id": randomUUID(),
      ...headers,
    });
    response.end(request.method === "HEAD" ? "" : body);
  }

  #answer(request: Received): AzureAnswer {
    if (request.host === "login.microsoftonline.com") return this.#token(request);
    const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1] ?? "";
    const audience = this.issued.get(token);
    if (request.host.endsWith(".vault.azure.net"))
      return audience === VAULT ? this.#vault(request) : this.#challenge();
    if (audience !== STORAGE) return fault(401, "InvalidAuthenticationInfo");
    return this.#storage(request);
  }

  #token({ method, url, body }: Received): AzureAnswer {
    const { tenantId, clientId, clientSecret } = this.#application;
    const form = new URLSearchParams(body.toString("utf8"));
    const scope = form.get("scope") ?? "";
    const isValid =
      method === "POST" &&
      url === `/${tenantId}/oauth2/v2.0/token` &&
      form.get("grant_type") === "client_credentials" &&
      form.get("client_id") === clientId &&
      form.get("client_secret") === clientSecret &&
      scope.endsWith("/.default");
    if (!isValid) return json(401, { error: "invalid_client", error_description: "AADSTS7000215" });
    const token = `eyJ0.${randomUUID()}`;
    this.issued.set(token, scope);
    return json(200, {
      token_type: "Bearer",
      expires_in: 3599,
      ext_expires_in: 3599,
      access_token: token,
    });
  }

  /** https://learn.microsoft.com/azure/key-vault/general/authentication-requests-and-responses */
  #challenge(): AzureAnswer {
    const authority = `https://login.microsoftonline.com/${this.#application.tenantId}`;
    const resource = "https://vault.azure.net";
    return {
      ...json(401, {
        error: { code: "Unauthorized", message: "AKV10000: Request is missing a Bearer token." },
      }),
      headers: {
        "content-type": "application/json; charset=utf-8",
        "www-authenticate": `Bearer authorization="${authority}", resource="${resource}"`,
      },
    };
  }

  #vault({ method, url, body }: Received): AzureAnswer {
    const name = /^\/secrets\/([A-Za-z0-9-]+)\/?(?:\?|$)/.exec(url)?.[1];
    if (name === undefined)
      return json(404, { error: { code: "NotFound", message: "Not found." } });
    if (method === "PUT") {
      const { value } = (body.length === 0 ? {} : JSON.parse(body.toString("utf8"))) as {
        value?: string;
      };
      if (value === undefined)
        return json(400, {
          error: { code: "BadParameter", message: "Property value has invalid value" },
        });
      this.secrets.set(name, value);
    }
    const value = this.secrets.get(name);
    if (value === undefined)
      return json(404, { error: { code: "SecretNotFound", message: `${name} was not found.` } });
    const id = `https://team-vault.vault.azure.net/secrets/${name}/${VERSION}`;
    return json(200, { value, id, attributes: { enabled: true, created: 1, updated: 1 } });
  }

  #storage(request: Received): AzureAnswer {
    const [path = "", query = ""] = request.url.split("?");
    const parameters = new URLSearchParams(query);
    const [container = "", ...rest] = path.slice(1).split("/");
    const blob = decodeURIComponent(rest.join("/"));
    const operation = `${request.method} ${parameters.get("comp") ?? ""}`;
    if (blob === "" && operation === "GET list") return this.#list(container);
    const key = `${container}/${blob}`;
    switch (operation) {
      case "PUT block":
        this.#blocks.set(`${key} ${parameters.get("blockid") ?? ""}`, request.body);
        return { status: 201, headers: { "x-ms-request-server-encrypted": "true" } };
      case "PUT blocklist": {
        const ids = [...request.body.toString("utf8").matchAll(/<Latest>([^<]+)<\/Latest>/g)];
        const parts = ids.map(([, id = ""]) => this.#blocks.get(`${key} ${id}`));
        if (parts.some((part) => part === undefined)) return fault(400, "InvalidBlockList");
        return this.#put(request, key, Buffer.concat(parts.filter((part) => part !== undefined)));
      }
      case "PUT ":
        return this.#putOrCopy(request, key);
      case "GET ":
      case "HEAD ":
        return this.#get(request, key);
      case "DELETE ":
        return this.blobs.delete(key) ? { status: 202 } : fault(404, "BlobNotFound");
      default:
        return fault(400, "UnsupportedHttpVerb");
    }
  }

  #putOrCopy(request: Received, key: string): AzureAnswer {
    const source = request.headers["x-ms-copy-source"];
    if (source === undefined)
      return request.headers["x-ms-blob-type"] === "BlockBlob"
        ? this.#put(request, key, request.body)
        : fault(400, "InvalidHeaderValue");
    const found = this.blobs.get(decodeURIComponent(new URL(String(source)).pathname.slice(1)));
    if (found === undefined) return fault(404, "CannotVerifyCopySource");
    this.blobs.set(key, found);
    return {
      status: 202,
      headers: { ...ETAG, "x-ms-copy-id": "1", "x-ms-copy-status": "success" },
    };
  }

  #put({ headers }: Received, key: string, content: Buffer): AzureAnswer {
    const metadata = Object.fromEntries(
      Object.entries(headers)
        .filter(([name]) => name.startsWith("x-ms-meta-"))
        .map(([name, value]) => [name, String(value)]),
    );
    this.blobs.set(key, { content, metadata });
    return { status: 201, headers: { ...ETAG, "x-ms-request-server-encrypted": "true" } };
  }

  #get(request: Received, key: string): AzureAnswer {
    const found = this.blobs.get(key);
    if (found === undefined) return fault(404, "BlobNotFound");
    const { content, metadata } = found;
    const range = request.headers["x-ms-range"] ?? request.headers.range;
    const [, first = "0", last = ""] = /^bytes=(\d+)-(\d*)$/.exec(String(range ?? "")) ?? [];
    const end = last === "" ? content.length : Math.min(Number(last) + 1, content.length);
    const part = content.subarray(Number(first), end);
    const partial = range !== undefined;
    return {
      status: partial ? 206 : 200,
      headers: {
        ...ETAG,
        ...metadata,
        "content-type": "application/octet-stream",
        "content-length": String(request.method === "HEAD" ? content.length : part.length),
        "x-ms-blob-type": "BlockBlob",
        "accept-ranges": "bytes",
        ...(partial && { "content-range": `bytes ${first}-${end - 1}/${content.length}` }),
      },
      body: part,
    };
  }

  /** https://learn.microsoft.com/rest/api/storageservices/list-blobs */
  #list(container: string): AzureAnswer {
    const blobs = [...this.blobs.keys()]
      .filter((key) => key.startsWith(`${container}/`))
      .toSorted()
      .map((key) => {
        const properties =
          `<Properties><Content-Length>${this.blobs.get(key)?.content.length ?? 0}` +
          `</Content-Length><Last-Modified>${ETAG["last-modified"]}</Last-Modified>` +
          "<Etag>0x1</Etag><BlobType>BlockBlob</BlobType></Properties>";
        const name = escapeXml(key.slice(container.length + 1));
        return `<Blob><Name>${name}</Name>${properties}</Blob>`;
      });
    return {
      status: 200,
      headers: { "content-type": "application/xml" },
      body:
        '<?xml version="1.0" encoding="utf-8"?><EnumerationResults ' +
        'ServiceEndpoint="https://reports.blob.core.windows.net/" ' +
        `ContainerName="${container}"><Blobs>${blobs.join("")}</Blobs><NextMarker /></` +
        "EnumerationResults>",
    };
  }
}

function json(status: number, body: object): AzureAnswer {
  return {
    status,
    headers: { "content-type": "application/json; charset=utf-8" },
    body: JSON.stringify(body),
  };
}

function fault(status: number, code: string): AzureAnswer {
  return {
    status,
    headers: { "content-type": "application/xml", "x-ms-error-code": code },
    body:
      '<?xml version="1.0" encoding="utf-8"?>' +
      `<Error><Code>${code}</Code><Message>${code}</Message></Error>`,
  };
}
