/**
 * Attempts to circumvent the binding proxy, byte by byte, through the real Envoy. Each is denied,
 * or treated as its canonical form; the service receives exactly the evaluated request; and the
 * credential is never sent with a request that was not allowed.
 */
import http2 from "node:http2";
import tls from "node:tls";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { Outside } from "../support/services.ts";
import { Sidecar } from "../support/sidecar.ts";

const TOKEN = "ghp_the-real-token-0123456789";

/**
 * Only reading pull requests of octo/public is allowed; the attacker wants octo/secret, or to
 * write.
 */
const GITHUB = {
  name: "github",
  type: "github",
  auth: { type: "token", env: { token: "SVC_SECRET_GITHUB_TOKEN" } },
  config: {},
  policy: {
    allow: ["pulls:read"],
    deny: [],
    httpRules: [{ methods: ["GET"], paths: ["/repos/octo/public/**"], action: "allow" }],
  },
  scope: { repositories: ["octo/public"] },
  audit: { enforcement: "enforce", logRequests: false },
};

let outside: Outside;
let sidecar: Sidecar;

beforeAll(async () => {
  outside = await Outside.start([
    "api.github.com",
    "github.com",
    "uploads.github.com",
    "codeload.github.com",
    "raw.githubusercontent.com",
    "evil.com",
  ]);
  sidecar = await Sidecar.start({
    outside,
    bindings: [GITHUB],
    secrets: { SVC_SECRET_GITHUB_TOKEN: TOKEN },
  });
});

afterAll(async () => {
  await sidecar?.stop();
  await outside?.close();
});

beforeEach(() => {
  outside.requests.length = 0;
});

/** All bytes of the response, until the peer closes the connection or stops sending. */
async function raw(bytes: string, serverName = "api.github.com"): Promise<string> {
  const socket = tls.connect({
    host: "127.0.0.1",
    port: sidecar.httpsPort,
    servername: serverName,
    ca: sidecar.bundle,
    ALPNProtocols: ["http/1.1"],
  });
  return new Promise((resolve, reject) => {
    let text = "";
    socket.on("data", (part: Buffer) => (text += part.toString("latin1")));
    socket.once("secureConnect", () => socket.write(bytes, "latin1"));
    socket.once("close", () => resolve(text));
    socket.once("error", (error) => (text === "" ? reject(error) : resolve(text)));
  });
}

const ALLOWED = "/repos/octo/public/pulls";

const statusOf = (answer: string): number => Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1] ?? 0);

function get(
  path: string,
  {
    host = "api.github.com",
    method = "GET",
    headers = "",
  }: { host?: string; method?: string; headers?: string } = {},
): string {
  return `${method} ${path} HTTP/1.1\r\nHost: ${host}\r\n${headers}Connection: close\r\n\r\n`;
}

test("what is allowed arrives", async () => {
  expect(statusOf(await raw(get(ALLOWED)))).toBe(200);
  expect(outside.requests).toMatchObject([{ url: ALLOWED }]);
});

describe("paths", () => {
  test.each([
    "/repos/octo/public/../secret/pulls",
    "/repos/octo/public/%2e%2e/secret/pulls",
    "/repos/octo/public/.%2E/secret/pulls",
    "/repos/octo/public%2F..%2Fsecret/pulls",
    "/repos/octo/public/..%2fsecret/pulls",
    "/repos/octo/public/%252e%252e/secret/pulls",
    "/repos/octo/public/..;/secret/pulls",
    "/repos/octo/public;x=/../secret/pulls",
    "/repos/octo/public/pulls;a=b",
    "/repos/octo/public/./pulls",
    "//repos/octo/public/pulls",
    "/repos//octo/public/pulls",
    "/repos/octo/public//pulls",
    "/repos/octo/public\\..\\secret/pulls",
    "/repos/octo/public/%5c..%5csecret/pulls",
    "/repos/octo/public/pulls%00",
    "/repos/octo/public/pulls%0d%0aHost:%20evil.com",
    "/repos/octo/public/pulls%",
    "/repos/octo/public/pulls#x",
    "/repos/octo/publi%63/pulls/../../secret/pulls",
    "/repos/octo/secret/pulls",
    "/repositories/1/pulls",
    "/REPOS/octo/public/pulls",
    "/graphql",
    "https://evil.com/repos/octo/public/pulls",
    "https://api.github.com@evil.com/repos/octo/public/pulls",
    "api.github.com:443",
    "*",
    "/repos/octo/public/\u00e9",
    "/repos/octo/public/\u0001",
    "/repos/octo/public/pulls\tx",
  ])("%j goes nowhere", async (path) => {
    const answer = await raw(get(path));
    expect(statusOf(answer)).toBeGreaterThanOrEqual(400);
    expect(statusOf(answer)).toBeLessThan(500);
    expect(outside.requests).toEqual([]);
    expect(answer).not.toContain(TOKEN);
  });

  test("absolute-form of the host itself is its canonical form", async () => {
    const answer = await raw(get(`https://api.github.com${ALLOWED}`));
    expect([200, 400, 403]).toContain(statusOf(answer));
    for (const request of outside.requests)
      expect(request).toMatchObject({ url: ALLOWED, host: "api.github.com" });
  });
});

describe("hosts", () => {
  test.each<[string, string, number]>([
    ["another case", get(ALLOWED, { host: "API.github.com" }), 400],
    ["a trailing dot", get(ALLOWED, { host: "api.github.com." }), 400],
    ["another port", get(ALLOWED, { host: "api.github.com:8443" }), 400],
    ["a host that is not bound", get(ALLOWED, { host: "evil.com" }), 421],
    ["another bound host than the connection's", get(ALLOWED, { host: "uploads.github.com" }), 421],
    ["an address", get(ALLOWED, { host: "127.0.0.1" }), 421],
    ["an IPv6 address", get(ALLOWED, { host: "[::1]" }), 400],
    ["two in one", get(ALLOWED, { host: "api.github.com, evil.com" }), 400],
    [
      "two headers",
      `GET ${ALLOWED} HTTP/1.1\r\nHost: api.github.com\r\nHost: evil.com\r\nConnection: ` +
        "close\r\n\r\n",
      400,
    ],
    [
      "two headers that agree",
      `GET ${ALLOWED} HTTP/1.1\r\nHost: api.github.com\r\nHost: ` +
        "api.github.com\r\nConnection: close\r\n\r\n",
      400,
    ],
    ["none", `GET ${ALLOWED} HTTP/1.1\r\nConnection: close\r\n\r\n`, 400],
    ["an empty one", get(ALLOWED, { host: "" }), 400],
    ["user information", get(ALLOWED, { host: "api.github.com@evil.com" }), 400],
  ])("%s", async (_name, bytes, status) => {
    const answer = await raw(bytes);
    expect(statusOf(answer)).toBe(status);
    expect(outside.requests).toEqual([]);
  });

  test("the port of the scheme is the host itself", async () => {
    expect(statusOf(await raw(get(ALLOWED, { host: "api.github.com:443" })))).toBe(200);
  });

  test("a second request on the connection, to another host, goes nowhere", async () => {
    const first = `GET ${ALLOWED} HTTP/1.1\r\nHost: api.github.com\r\n\r\n`;
    const answer = await raw(
      first + get("/repos/octo/public/releases/1/assets", { host: "uploads.github.com" }),
    );
    expect(answer.match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 200", "HTTP/1.1 421"]);
    expect(outside.requests).toHaveLength(1);
  });

  test("HTTP/2 streams of one connection are each held to its server name", async () => {
    const session = http2.connect(`https://api.github.com:443`, {
      createConnection: () =>
        tls.connect({
          host: "127.0.0.1",
          port: sidecar.httpsPort,
          servername: "api.github.com",
          ca: sidecar.bundle,
          ALPNProtocols: ["h2"],
        }),
    });
    const status = (authority: string): Promise<number> =>
      new Promise((resolve, reject) => {
        const stream = session.request({ ":path": ALLOWED, ":authority": authority });
        stream.on("response", (headers) => resolve(Number(headers[":status"])));
        stream.on("error", reject);
        stream.resume();
        stream.end();
      });
    expect(await status("api.github.com")).toBe(200);
    expect(await status("uploads.github.com")).toBe(421);
    expect(await status("evil.com")).toBe(421);
    session.destroy();
    expect(outside.requests).toHaveLength(1);
  });

  test.each([
    "",
    "evil.com",
    "127.0.0.1.evil.com",
    "xapi.github.com",
    "api.github.com.evil.com",
    "github.com.",
    "*.github.com",
  ])("no handshake for %j", async (name) => {
    await expect(raw(get(ALLOWED), name)).rejects.toThrow();
  });
});

describe("framing", () => {
  test.each<[string, string]>([
    [
      "length and chunks",
      `POST ${ALLOWED} HTTP/1.1\r\nHost: api.github.com\r\nContent-Length: ` +
        "4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /repos/octo/secret/pulls " +
        "HTTP/1.1\r\nHost: api.github.com\r\n\r\n",
    ],
    [
      "two lengths",
      `POST ${ALLOWED} HTTP/1.1\r\nHost: api.github.com\r\nContent-Length: ` +
        "4\r\nContent-Length: 5\r\n\r\nabcde",
    ],
    [
      "an odd transfer encoding",
      `POST ${ALLOWED} HTTP/1.1\r\nHost: api.github.com\r\nTransfer-Encoding: ` +
        "xchunked\r\n\r\n0\r\n\r\n",
    ],
    [
      "a length with a sign",
      `POST ${ALLOWED} HTTP/1.1\r\nHost: api.github.com\r\nContent-Length: +4\r\n\r\nabcd`,
    ],
    [
      "a space before the colon",
      `GET ${ALLOWED} HTTP/1.1\r\nHost : api.github.com\r\nConnection: close\r\n\r\n`,
    ],
    ["no request at all", "\u0016\u0003\u0001 not http\r\n\r\n"],
  ])("%s: nothing that was not judged arrives", async (_name, bytes) => {
    const answer = await raw(bytes);
    expect([400, 501]).toContain(statusOf(answer));
    expect(outside.requests).toEqual([]);
  });

  test("what follows an upgrade that was denied is no request", async () => {
    const answer = await raw(
      "GET /repos/octo/secret/pulls HTTP/1.1\r\nHost: api.github.com\r\nConnection: " +
        "Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: " +
        `13\r\n\r\nGET ${ALLOWED} HTTP/1.1\r\nHost: api.github.com\r\n\r\n`,
    );
    expect(statusOf(answer)).toBe(403);
    expect(outside.requests).toEqual([]);
  });
});

describe("headers", () => {
  test.each<[string, string]>([
    ["credentials of its own", "Authorization: Bearer own\r\nX-Api-Key: own\r\nCookie: own=1\r\n"],
    ["two of them", "Authorization: Bearer own\r\nauthorization: Basic own\r\n"],
    [
      "headers that steer the proxy",
      "x-envoy-original-path: /repos/octo/secret/pulls\r\nx-envoy-original-dst-host: " +
        "127.0.0.1:1\r\nx-svc-upstream: 127.0.0.1:1\r\nx-forwarded-for: own\r\n",
    ],
  ])("%s do not arrive", async (_name, headers) => {
    const answer = await raw(get(ALLOWED, { headers }));
    for (const { rawHeaders, url } of outside.requests) {
      expect(url).toBe(ALLOWED);
      expect(JSON.stringify(rawHeaders)).not.toMatch(/own|x-envoy|x-svc|127\.0\.0\.1/);
    }
    expect([200, 400]).toContain(statusOf(answer));
  });

  test.each([
    "access_token=own&state=open",
    "state=open&access_token=own&access_token=own2",
    "access_token&state=open&access_token",
    "access_token=&state=open&token=own&client_secret=own",
    "access_token=own%26x&state=open",
    "access_token=own=own&state=open",
  ])("a credential in the query does not arrive: %s", async (query) => {
    expect(statusOf(await raw(get(`${ALLOWED}?${query}`)))).toBe(200);
    expect(outside.requests.map(({ url }) => url)).toEqual([`${ALLOWED}?state=open`]);
  });

  test.each([
    "%61ccess_token=own",
    "access%5ftoken=own",
    "access%255ftoken=own",
    "Access_Token=own",
    "access_token[]=own",
    "access_token%5B%5D=own",
    "a=b;access_token=own",
    "+access_token=own",
    "access_token%00=own",
    "access-token=own",
    "%75access_token=own&%61ccess_token=own",
  ])("nor does one in another spelling: %s", async (query) => {
    const answer = await raw(get(`${ALLOWED}?${query}`));
    expect(statusOf(answer)).toBe(400);
    expect(answer).toContain("malformed_request");
    expect(outside.requests).toEqual([]);
  });

  test.each([
    "X-HTTP-Method-Override: DELETE",
    "X-HTTP-Method: DELETE",
    "X-Method-Override: DELETE",
    "x-http-METHOD-override:",
    "X-Original-URL: /repos/octo/secret/pulls",
    "X-Rewrite-URL: /repos/octo/secret/pulls",
    "X-Original-Method: DELETE",
    "X-Original-Host: evil.com",
    "x_http_method_override: DELETE",
    "transfer_encoding: chunked",
    "content_length: 5",
    "x_api_key: own",
    "author_ization: own",
    "x.api.key: own",
    "x-forwarded_host: evil.com",
  ])("what asks for another request goes nowhere: %s", async (header) => {
    const answer = await raw(get(ALLOWED, { headers: `${header}\r\n` }));
    expect(statusOf(answer)).toBe(400);
    expect(outside.requests).toEqual([]);
  });

  test.each([
    "X-Forwarded-Host: evil.com",
    "X-Forwarded-Uri: /evil.com",
    "X-Forwarded-Prefix: /evil.com",
    "X-Forwarded-Path: /evil.com",
    "X-Forwarded-Proto: evil.com",
    "X-Forwarded-For: evil.com",
    "X-Forwarded-Anything: evil.com",
    "Forwarded: host=evil.com",
    "X-Host: evil.com",
    "X-Real-IP: evil.com",
    "Cookie2: evil.com",
  ])("what tells of another connection does not arrive: %s", async (header) => {
    const headers = `${header}\r\nx-kept: yes\r\n`;
    expect(statusOf(await raw(get(ALLOWED, { headers })))).toBe(200);
    const [received] = outside.requests;
    expect(received?.headers["x-kept"]).toBe("yes");
    expect(JSON.stringify(received?.rawHeaders)).not.toContain("evil.com");
  });

  test("objects' own metadata may have underscores in its names", async () => {
    const headers = "x-amz-meta-a_b: 1\r\nx-ms-meta-a_b: 2\r\nx-goog-meta-a.b: 3\r\n";
    expect(statusOf(await raw(get(ALLOWED, { headers })))).toBe(200);
    expect(outside.requests[0]?.headers).toMatchObject({
      "x-amz-meta-a_b": "1",
      "x-ms-meta-a_b": "2",
      "x-goog-meta-a.b": "3",
    });
  });

  test.each(["_method=DELETE", "a=b&%5Fmethod=DELETE", "a=b;_method=DELETE"])(
    "another method in a form, or in the query, goes nowhere: %s",
    async (text) => {
      expect(statusOf(await raw(get(`${ALLOWED}?${text}`)))).toBe(400);
      const form =
        `POST ${ALLOWED} HTTP/1.1\r\nHost: api.github.com\r\nContent-Type: ` +
        "application/x-www-form-urlencoded; charset=utf-8\r\nContent-Length: " +
        `${text.length}\r\nConnection: close\r\n\r\n${text}`;
      expect(statusOf(await raw(form))).toBe(400);
      expect(outside.requests).toEqual([]);
    },
  );
});
