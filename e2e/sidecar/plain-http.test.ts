/**
 * The plain listener: requests of agents that speak HTTP are judged as those over TLS, and are
 * forwarded over TLS. Nothing that a client sends makes a listener take itself for the other one.
 */
import http2 from "node:http2";
import net from "node:net";
import tls from "node:tls";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { Outside } from "../support/services.ts";
import { Sidecar } from "../support/sidecar.ts";
import { until } from "../support/wait.ts";

const TOKEN = "ghp_the-real-token-0123456789";
const ALLOWED = "/repos/octo/public/pulls";

let outside: Outside;
let sidecar: Sidecar;

beforeAll(async () => {
  outside = await Outside.start(["api.github.com", "github.com", "evil.com"]);
  sidecar = await Sidecar.start({
    outside,
    bindings: [
      {
        name: "github",
        type: "github",
        auth: { type: "token", env: { token: "SVC_SECRET_GITHUB_TOKEN" } },
        config: {},
        policy: { allow: ["pulls:read"], deny: [], httpRules: [] },
        scope: { repositories: ["octo/public"] },
        audit: { enforcement: "enforce", logRequests: false },
      },
    ],
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

/** All bytes of the response, until Envoy closes the connection. */
async function raw(bytes: string | Buffer, port = sidecar.httpPort): Promise<string> {
  const socket = net.connect(port, "127.0.0.1");
  return new Promise((resolve) => {
    let text = "";
    socket.on("data", (part: Buffer) => (text += part.toString("latin1")));
    socket.once("connect", () => socket.write(bytes, "latin1"));
    socket.on("error", () => undefined);
    socket.once("close", () => resolve(text));
  });
}

const statusOf = (answer: string): number => Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1] ?? 0);
const codeOf = (answer: string): string | undefined => /"code":"(\w+)"/.exec(answer)?.[1];

const get = (target: string, host = "api.github.com", more = ""): string =>
  `GET ${target} HTTP/1.1\r\nHost: ${host}\r\n${more}Connection: close\r\n\r\n`;

/** What arrived is what was judged, over TLS, with the real credential. */
function expectForwarded(): void {
  expect(outside.requests).toMatchObject([{ url: ALLOWED, host: "api.github.com" }]);
  const { headers, rawHeaders } = outside.requests[0] as (typeof outside.requests)[0];
  expect(headers).toMatchObject({ authorization: `Bearer ${TOKEN}`, ":scheme": "https" });
  expect(JSON.stringify(rawHeaders)).not.toMatch(/agents-own|x-forwarded|evil|"http"/);
}

describe("a request to a bound host is judged", () => {
  test.each<[string, () => string]>([
    ["by its name", () => get(ALLOWED)],
    [
      "by its name and the listener's port",
      () => get(ALLOWED, `api.github.com:${sidecar.httpPort}`),
    ],
    ["as by a proxy", () => get(`http://api.github.com${ALLOWED}`)],
    ["as by a proxy, as a user", () => get(`http://agents-own@api.github.com${ALLOWED}`)],
    [
      "as by a proxy, beside another host",
      () => get(`http://api.github.com${ALLOWED}`, "evil.com"),
    ],
    [
      "with a credential of the agent",
      () => get(ALLOWED, undefined, "Authorization: agents-own\r\n"),
    ],
    ["with a scheme of the agent", () => get(ALLOWED, undefined, "X-Forwarded-Proto: evil\r\n")],
  ])("%s", async (_name, bytes) => {
    expect(statusOf(await raw(bytes()))).toBe(200);
    expectForwarded();
  });

  test("over HTTP/2 without TLS", async () => {
    const session = http2.connect(`http://127.0.0.1:${sidecar.httpPort}`);
    const status = (authority: string): Promise<number> =>
      new Promise((resolve, reject) => {
        const stream = session.request({ ":path": ALLOWED, ":authority": authority });
        stream.on("response", (headers) => resolve(Number(headers[":status"])));
        stream.on("error", reject);
        stream.resume();
        stream.end();
      });
    expect(await status("api.github.com")).toBe(200);
    expectForwarded();
    expect(await status("evil.com")).toBe(403);
    expect(await status("API.github.com")).toBe(400);
    session.destroy();
    expect(outside.requests).toHaveLength(1);
  });

  test.each([
    ["/repos/octo/secret/pulls", "out_of_scope"],
    ["/repos/octo/public/issues", "action_denied"],
    ["/nothing", "unresolved_action"],
  ])("and denied: %s", async (path, code) => {
    const answer = await raw(get(path));
    expect([statusOf(answer), codeOf(answer)]).toEqual([403, code]);
    expect(outside.requests).toEqual([]);
  });

  test("and has its records", async () => {
    const path = "/repos/octo/public/pulls/4711";
    await raw(get(path));
    const records = await until(() => {
      const mine = sidecar.audit().filter(({ fields }) => fields["path"] === path);
      return mine.length === 1 && mine;
    });
    expect(records).toMatchObject([
      {
        fields: { allowed: true, binding: "github", action: "pulls:read", host: "api.github.com" },
      },
    ]);
  });
});

describe("goes nowhere", () => {
  test.each<[string, string, number, string | undefined]>([
    ["a host that is not bound", get(ALLOWED, "evil.com"), 403, "unknown_host"],
    ["an address", get(ALLOWED, "127.0.0.1"), 403, "unknown_host"],
    ["the metadata's address", get(ALLOWED, "169.254.169.254"), 403, "unknown_host"],
    ["a name below", get(ALLOWED, "api.github.com.evil.com"), 403, "unknown_host"],
    ["another case", get(ALLOWED, "API.github.com"), 400, "malformed_request"],
    ["a trailing dot", get(ALLOWED, "api.github.com."), 400, "malformed_request"],
    ["the port of HTTP", get(ALLOWED, "api.github.com:80"), 400, "malformed_request"],
    ["the port of HTTPS", get(ALLOWED, "api.github.com:443"), 400, "malformed_request"],
    ["another port", get(ALLOWED, "api.github.com:1"), 400, "malformed_request"],
    ["a port that is none", get(ALLOWED, "api.github.com:"), 400, "malformed_request"],
    ["an IPv6 address", get(ALLOWED, "[::1]"), 400, "malformed_request"],
    ["user information", get(ALLOWED, "api.github.com@evil.com"), 400, "malformed_request"],
    ["two in one", get(ALLOWED, "api.github.com, evil.com"), 400, undefined],
    ["an empty host", get(ALLOWED, ""), 400, "malformed_request"],
    ["two hosts", get(ALLOWED, "api.github.com", "Host: evil.com\r\n"), 400, "malformed_request"],
    ["none", `GET ${ALLOWED} HTTP/1.1\r\nConnection: close\r\n\r\n`, 400, undefined],
    ["another's absolute form", get(`http://evil.com${ALLOWED}`), 403, "unknown_host"],
    ["an absolute form of https", get(`https://api.github.com${ALLOWED}`), 403, undefined],
    ["another's absolute form of https", get(`https://evil.com${ALLOWED}`), 403, undefined],
    [
      "user information in it",
      get(`http://api.github.com@evil.com${ALLOWED}`),
      403,
      "unknown_host",
    ],
    ["another port in it", get(`http://api.github.com:1${ALLOWED}`), 400, "malformed_request"],
    ["another scheme", get(`ftp://api.github.com${ALLOWED}`), 400, undefined],
    ["a path that is a URL", get(`//evil.com${ALLOWED}`), 403, "unresolved_action"],
    [
      "CONNECT",
      "CONNECT api.github.com:443 HTTP/1.1\r\nHost: api.github.com:443\r\n\r\n",
      404,
      undefined,
    ],
    [
      "CONNECT without a port",
      "CONNECT api.github.com HTTP/1.1\r\nHost: api.github.com\r\nConnection: close\r\n\r\n",
      400,
      undefined,
    ],
    ["OPTIONS of the proxy", "OPTIONS * HTTP/1.1\r\nHost: api.github.com\r\n\r\n", 404, undefined],
  ])("%s", async (_name, bytes, status, code) => {
    const answer = await raw(
      bytes.replace(/\r\n\r\n$/, "\r\nX-Last: 1\r\nConnection: close\r\n\r\n"),
    );
    expect([statusOf(answer), codeOf(answer)]).toEqual([status, code]);
    expect(outside.requests).toEqual([]);
    expect(answer).not.toContain(TOKEN);
  });

  test("a second request on the connection, to another host", async () => {
    const first = `GET ${ALLOWED} HTTP/1.1\r\nHost: api.github.com\r\n\r\n`;
    const answer = await raw(first + get(ALLOWED, "evil.com"));
    expect(answer.match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 200", "HTTP/1.1 403"]);
    expect(outside.requests).toHaveLength(1);
  });

  test("an upgrade to HTTP/2", async () => {
    const upgrade =
      "Connection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n";
    const answer = await raw(
      `GET ${ALLOWED} HTTP/1.1\r\nHost: api.github.com\r\n${upgrade}\r\nPRI * HTTP/2.0\r\n\r\n`,
    );
    expect(answer).not.toContain("101 Switching");
  });

  test("TLS on the plain listener, and plain text on that of TLS", async () => {
    const client = tls.connect({
      host: "127.0.0.1",
      port: sidecar.httpPort,
      servername: "evil.com",
    });
    await expect(
      new Promise((resolve, reject) => client.once("secureConnect", resolve).once("error", reject)),
    ).rejects.toThrow();
    expect(await raw(get(ALLOWED), sidecar.httpsPort)).toBe("");
    expect(outside.requests).toEqual([]);
  });
});

/** Over TLS, the server name of the handshake is compared, whatever the request says of itself. */
test.each([
  "X-Forwarded-Proto: http",
  "X-Svc-Listener: http",
  "X-Envoy-Internal: true",
  "Forwarded: proto=http",
])("the listener of TLS does not take a request for a plain one: %s", async (header) => {
  for (const target of [ALLOWED, `http://github.com${ALLOWED}`]) {
    const socket = tls.connect({
      host: "127.0.0.1",
      port: sidecar.httpsPort,
      servername: "api.github.com",
      ca: sidecar.bundle,
      ALPNProtocols: ["http/1.1"],
    });
    const answer = await new Promise<string>((resolve) => {
      let text = "";
      socket.on("data", (part: Buffer) => (text += part.toString("latin1")));
      socket.once("close", () => resolve(text));
      socket.write(get(target, "github.com", `${header}\r\n`));
    });
    expect([statusOf(answer), codeOf(answer)]).toEqual([421, "malformed_request"]);
  }
  expect(outside.requests).toEqual([]);
});

describe("a malformed request leaves a record and a log line", () => {
  const recorded = (host: string, reason: RegExp): Promise<unknown> =>
    until(() => {
      const fits = ({ fields }: { readonly fields: Record<string, unknown> }): boolean =>
        fields["host"] === host && reason.test(String(fields["reason"]));
      const found = sidecar.audit().find(fits);
      return found?.fields;
    });

  test("on the plain listener", async () => {
    await raw(get("/ghp_in-the-path\\x", "a-host-of-its-own.example"));
    expect(await recorded("a-host-of-its-own.example", /backslash/)).toMatchObject({
      allowed: false,
      listener: "http",
      method: "GET",
      rule: "malformed_request",
      workload: "default/tester",
    });
    expect(sidecar.logs).toMatch(/a-host-of-its-own\.example.*malformed request refused/);
    expect(sidecar.logs).not.toContain("ghp_in-the-path");
  });

  test.each<[string, string, number]>([
    ["what is no HTTP", "GET / HTTP/1.1\r\nHost : api.github.com\r\n\r\n", 400],
    ["CONNECT", "CONNECT github.com:443 HTTP/1.1\r\nHost: github.com:443\r\n\r\n", 404],
  ])("where Envoy itself refuses it, on each listener: %s", async (_name, bytes, status) => {
    const reason = `Envoy refused the request itself (${status}).`;
    const count = (): number =>
      sidecar.audit().filter(({ fields }) => fields["reason"] === reason).length;
    for (const connect of [
      () => net.connect(sidecar.httpPort, "127.0.0.1"),
      () =>
        tls.connect({
          host: "127.0.0.1",
          port: sidecar.httpsPort,
          servername: "api.github.com",
          ca: sidecar.bundle,
        }),
    ]) {
      const before = count();
      const socket = connect();
      socket.write(bytes);
      await until(() => count() > before, { what: "the record" });
      socket.destroy();
    }
  });
});
