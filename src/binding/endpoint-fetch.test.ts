/** A token server behind TLS, found through a DNS server. */
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import https from "node:https";
import type { AddressInfo } from "node:net";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { FakeClock } from "../platform/testing.ts";
import type { TokenFetch, TokenRequest, TokenResponse } from "../providers/contract.ts";
import { endpointFetch } from "./endpoint-fetch.ts";
import { EndpointResolver } from "./resolver.ts";
import { DnsServer } from "./testing-dns.ts";
import { eventually } from "../../e2e/support/wait.ts";

const GET: TokenRequest = { method: "GET" };
const HOST = "tokens.service.example";

let dir: string;
let dns: DnsServer;
let server: https.Server;
let requests: { readonly url: string; readonly host: string; readonly body: string }[];
let fetched: TokenFetch;

beforeAll(async () => {
  dir = mkdtempSync(path.join(os.tmpdir(), "svc-endpoint-"));
  for (const name of ["trusted", "other"]) certificate(name);
  dns = new DnsServer();
  server = https.createServer(
    { cert: readFileSync(file("trusted.pem")), key: readFileSync(file("trusted.key")) },
    (request, response) => {
      let body = "";
      request.on("data", (chunk: Buffer) => (body += chunk.toString()));
      request.on("end", () => {
        requests.push({ url: request.url ?? "", host: request.headers.host ?? "", body });
        if (request.url === "/large") response.end(Buffer.alloc(1024 * 1024 + 1));
        else if (request.url === "/silent") return;
        else if (request.url === "/moved") response.writeHead(302, { location: "/token" }).end();
        else response.end("a-token");
      });
    },
  );
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
  dns.close();
  rmSync(dir, { recursive: true, force: true });
});

const file = (name: string): string => path.join(dir, name);

/** Creates a self-signed certificate for the host. */
function certificate(name: string): void {
  execFileSync(
    "openssl",
    [
      ..."req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2".split(" "),
      "-subj",
      `/CN=${name}`,
      "-addext",
      `subjectAltName=DNS:${HOST}`,
      "-keyout",
      file(`${name}.key`),
      "-out",
      file(`${name}.pem`),
    ],
    { stdio: "ignore" },
  );
}

let address: Promise<string> | undefined;

beforeEach(async () => {
  requests = [];
  dns.records.clear();
  dns.records.set(`A ${HOST}`, [{ address: "127.0.0.1", ttl: 60 }]);
  fetched = await client("trusted.pem");
});

async function client(caFile: string, port = portOf()): Promise<TokenFetch> {
  address ??= dns.listen();
  const resolver = new EndpointResolver({
    clock: new FakeClock(),
    servers: [await address],
    port: 443,
  });
  return endpointFetch(resolver, { caFile: file(caFile), port });
}

const portOf = (): number => (server.address() as AddressInfo).port;

/** The reason why a request failed. */
async function failure(request: Promise<TokenResponse>): Promise<string> {
  try {
    return `status ${(await request).status}`;
  } catch (error) {
    const { code = "", message } = error as Error & { readonly code?: string };
    return `${code} ${message}`;
  }
}

describe("a token server", () => {
  test("is asked at the address that DNS has, on the endpoints' port", async () => {
    const init: TokenRequest = { method: "POST", body: "a=b" };
    const response = await fetched(`https://${HOST}/token?x=1`, init);
    expect(await response.text()).toBe("a-token");
    expect(requests).toEqual([{ url: "/token?x=1", host: HOST, body: "a=b" }]);
    await (await fetched(`https://${HOST}/again`, GET)).text();
    expect(requests).toHaveLength(2);
  });

  test("is asked on the port that its URL names, if it names one", async () => {
    const elsewhere = await client("trusted.pem", 1);
    const response = await elsewhere(`https://${HOST}:${portOf()}/token`, GET);
    expect(response.status).toBe(200);
    expect(await failure(elsewhere(`https://${HOST}/token`, GET))).toContain("ECONNREFUSED");
  });

  test("is asked at another of its addresses if one does not answer", async () => {
    dns.records.set(`A ${HOST}`, [
      { address: "127.0.0.9", ttl: 60 },
      { address: "127.0.0.1", ttl: 60 },
    ]);
    expect((await fetched(`https://${HOST}/token`, GET)).status).toBe(200);
  });

  test("that DNS does not know is not asked", async () => {
    dns.records.clear();
    expect(await failure(fetched(`https://${HOST}/token`, GET))).toBe(
      `ENOTFOUND DNS has no address for ${HOST}`,
    );
  });

  test("must not redirect", async () => {
    expect(await failure(fetched(`https://${HOST}/moved`, GET))).toContain("redirect");
    expect(requests.map(({ url }) => url)).toEqual(["/moved"]);
  });

  test("gives its status, headers and body, in bytes or as text", async () => {
    const response = await fetched(`https://${HOST}/token`, GET);
    expect([response.ok, response.status]).toEqual([true, 200]);
    expect(response.headers.get("Content-Length")).toBe("7");
    expect(response.headers.get("retry-after")).toBeNull();
    expect(Buffer.from(await response.bytes()).toString()).toBe(await response.text());
  });

  test("that answers without end is not read to its end", async () => {
    expect(await failure(fetched(`https://${HOST}/large`, GET))).toContain("larger than 1048576");
  });

  test("is asked over HTTPS only", async () => {
    expect(await failure(fetched(`http://${HOST}/token`, GET))).toContain("over HTTPS only");
  });

  test("that does not answer is left when the signal says so", async () => {
    const abort = new AbortController();
    const request = failure(fetched(`https://${HOST}/silent`, { ...GET, signal: abort.signal }));
    await eventually(() => expect(requests).toHaveLength(1));
    abort.abort();
    expect(await request).toContain("ABORT_ERR");
  });

  test("must have a certificate that the bundle verifies", async () => {
    const stranger = await client("other.pem");
    expect(await failure(stranger(`https://${HOST}/token`, GET))).toContain("self-signed");
    expect(requests).toEqual([]);
  });

  test("must have a certificate for its name", async () => {
    dns.records.set("A other.service.example", [{ address: "127.0.0.1", ttl: 60 }]);
    const request = fetched("https://other.service.example/token", GET);
    expect(await failure(request)).toContain("ERR_TLS_CERT_ALTNAME_INVALID");
    expect(requests).toEqual([]);
  });
});
