/** Tokens of MCP servers, from a real token server over TLS. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { CapturedLog, FakeClock } from "../../platform/testing.ts";
import { Secret } from "../../platform/secret.ts";
import type { McpCredential, McpServerPolicy } from "../../policy/snapshot.ts";
import { TestTokenServer, tokenReply, type TokenServerReply } from "../testing-token-server.ts";
import { TokenCredentials } from "./client-credentials.ts";
import { type ClientCredentials, CredentialError } from "./credentials.ts";
import { createTokenRequest } from "./token-request.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const CLIENT_SECRET = "a secret: with ~ and +";

let dir: string;
let server: TestTokenServer;
let clock: FakeClock;
let log: CapturedLog;
let outcomes: string[];
let credentials: TokenCredentials;

beforeEach(async () => {
  dir = mkdtempSync(path.join(os.tmpdir(), "svc-oauth-"));
  server = await TestTokenServer.start();
  clock = new FakeClock();
  log = new CapturedLog();
  outcomes = [];
  writeFileSync(path.join(dir, "ca.pem"), server.authorityPem);
  credentials = withBundle("ca.pem");
});

afterEach(async () => {
  credentials.close();
  await server.close();
  rmSync(dir, { recursive: true, force: true });
});

function withBundle(file: string): TokenCredentials {
  return new TokenCredentials({
    request: createTokenRequest({ caFile: path.join(dir, file), clock }),
    onRequest: (provider, outcome) => outcomes.push(`${provider} ${outcome}`),
    clock,
    random: () => 0.5,
    log: log.log,
  });
}

function oauth(change: Partial<ClientCredentials> = {}): ClientCredentials {
  return {
    kind: "client-credentials",
    tokenUrl: server.url,
    clientId: new Secret("the client"),
    clientSecret: new Secret(CLIENT_SECRET),
    parameters: { scope: "read write", audience: "api", resource: "https://mcp.example.com/" },
    ...change,
  };
}

function mcp(credential: McpCredential = oauth(), name = "tracker"): McpServerPolicy {
  return {
    key: `default/${name}`,
    namespace: "default",
    name,
    transport: "http",
    endpoint: { tls: true, host: "mcp.example.com", port: 443 },
    path: "/",
    credential,
    lists: {
      tools: { allowed: undefined, denied: [] },
      prompts: { allowed: undefined, denied: [] },
      resources: { allowed: undefined, denied: [] },
    },
    auditOnly: false,
    recordsArguments: false,
    maxRequestsPerDay: undefined,
  };
}

const header = async (policy = mcp()): Promise<string | undefined> =>
  (await credentials.headerOf(policy))?.join(": ");

async function failure(policy = mcp()): Promise<string> {
  const error: unknown = await header(policy).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof CredentialError)) throw new Error("no CredentialError", { cause: error });
  return error.message;
}

/** Resolves after `times` further calls of the token server were answered. */
async function asked(times: number): Promise<void> {
  await expect.poll(() => outcomes.length).toBe(times);
}

describe("a token", () => {
  test("is requested with the client's credentials and the parameters", async () => {
    expect(await header()).toBe("authorization: Bearer t1");
    const [call] = server.calls;
    expect(call).toMatchObject({ method: "POST", url: "/token" });
    expect(call?.headers).toMatchObject({
      accept: "application/json",
      "content-type": "application/x-www-form-urlencoded",
    });
    expect(Object.fromEntries(call?.form ?? [])).toEqual({
      grant_type: "client_credentials",
      scope: "read write",
      audience: "api",
      resource: "https://mcp.example.com/",
    });
    const basic = String(call?.headers.authorization).replace(/^Basic /, "");
    const [id, secret] = Buffer.from(basic, "base64").toString().split(":");
    expect([id, secret].map((part) => new URLSearchParams(`x=${part}`).get("x"))).toEqual([
      "the client",
      CLIENT_SECRET,
    ]);
    expect(outcomes).toEqual(["tracker issued"]);
  });

  test("is kept, and shared by the requests that wait for it", async () => {
    expect(await Promise.all([header(), header(), header()])).toEqual(
      Array(3).fill("authorization: Bearer t1"),
    );
    expect(credentials.headerOf(mcp())).toEqual(["authorization", "Bearer t1"]);
    expect(server.calls).toHaveLength(1);
  });

  test("is renewed in the background before it expires", async () => {
    await header();
    server.reply = tokenReply("t2");
    clock.advance(59 * 0.975 * MINUTE);
    await expect.poll(() => credentials.headerOf(mcp())).toEqual(["authorization", "Bearer t2"]);
  });

  test("is used to its end while the token server is down", async () => {
    await header();
    server.reply = (_call, response) => void response.writeHead(503).end();
    clock.advance(59 * 0.975 * MINUTE);
    await asked(2);
    expect(await header()).toBe("authorization: Bearer t1");
    clock.step(3 * MINUTE);
    expect(await failure()).toContain("Provider tracker: no access token is available");
  });

  test.each([
    ["without a lifetime counts for five minutes", { expires_in: undefined }, 4 * MINUTE],
    ["has a lifetime as text", { expires_in: "600" }, 9 * MINUTE],
    ["has a very long lifetime", { expires_in: 1e9 }, 12 * HOUR],
    ["has no type", { token_type: undefined }, 59 * MINUTE],
    ["has a type in another case", { token_type: "bearer" }, 59 * MINUTE],
  ])("that %s", async (_name, more, renewed) => {
    server.reply = tokenReply("t1", more);
    expect(await header()).toBe("authorization: Bearer t1");
    expect(clock.pending).toEqual([renewed * 0.975]);
  });

  test("belongs to one server and one content of its credential", async () => {
    let count = 0;
    server.reply = (call, response) => tokenReply(`t${++count}`)(call, response);
    const all = [
      mcp(oauth(), "one"),
      mcp(oauth(), "two"),
      mcp(oauth({ clientId: new Secret("other") }), "one"),
      mcp(oauth({ clientSecret: new Secret("other") }), "one"),
      mcp(oauth({ tokenUrl: `${server.url}?x=1` }), "one"),
      mcp(oauth({ parameters: { scope: "other" } }), "one"),
    ];
    const seen = new Set<string | undefined>();
    for (const one of all) seen.add(await header(one));
    expect(seen.size).toBe(all.length);
    // A new compilation makes new objects with the same content.
    expect(await header(mcp(oauth(), "one"))).toBe("authorization: Bearer t1");
    expect(server.calls).toHaveLength(all.length);
  });

  test("is dropped when the policy has its server no more", async () => {
    await header(mcp(oauth(), "one"));
    await header(mcp(oauth(), "two"));
    credentials.retain([mcp(oauth(), "two"), mcp({ kind: "none" }, "one")]);
    expect(clock.pending).toHaveLength(1);
    server.reply = tokenReply("t2");
    expect(await header(mcp(oauth(), "one"))).toBe("authorization: Bearer t2");
    expect(await header(mcp(oauth(), "two"))).toBe("authorization: Bearer t1");
  });
});

describe("a token that the MCP server refuses", () => {
  test("is replaced for the next request, which need not be soon", async () => {
    await header();
    server.reply = tokenReply("t2");
    credentials.refused(mcp());
    expect(server.calls).toHaveLength(1);
    expect(await header()).toBe("authorization: Bearer t2");
  });

  test("is replaced once in 30 seconds, however often it is refused", async () => {
    for (let times = 0; times < 20; times++) {
      await header();
      credentials.refused(mcp());
    }
    expect(server.calls).toHaveLength(2);
    clock.advance(30_000);
    credentials.refused(mcp());
    await header();
    expect(server.calls).toHaveLength(3);
  });

  test("says nothing about servers without a token", () => {
    for (const credential of [oauth(), { kind: "none" } as const]) {
      credentials.refused(mcp(credential));
    }
    expect(server.calls).toHaveLength(0);
  });
});

describe("a token server that", () => {
  const status =
    (code: number, body = "", headers: Record<string, string> = {}): TokenServerReply =>
    (_call, response) =>
      void response.writeHead(code, headers).end(body);

  test.each<[name: string, reply: TokenServerReply, outcome: string, reason: string]>([
    ["refuses", status(401, '{"error":"invalid_client"}'), "refused", "401 (invalid_client)"],
    [
      "quotes the secret",
      status(400, JSON.stringify({ error: CLIENT_SECRET, error_description: CLIENT_SECRET })),
      "refused",
      "answered 400 to the request",
    ],
    ["is busy", status(429), "failed", "answered 429"],
    ["is broken", status(500, CLIENT_SECRET), "failed", "answered 500"],
    [
      "redirects",
      status(307, "", { location: "https://localhost:1/" }),
      "failed",
      "redirects are not followed",
    ],
    ["answers a page", status(200, "<html>"), "failed", "contains no bearer token"],
    ["answers null", status(200, "null"), "failed", "contains no bearer token"],
    ["answers no token", status(200, "{}"), "failed", "contains no bearer token"],
    ["answers a token of a header", tokenReply("a\r\nx: y"), "failed", "no bearer token"],
    ["answers a token of two words", tokenReply("a b"), "failed", "no bearer token"],
    ["answers a long token", tokenReply("x".repeat(20_000)), "failed", "no bearer token"],
    ["answers another type", tokenReply("t", { token_type: "mac" }), "failed", "no bearer token"],
    ["answers a dead token", tokenReply("t", { expires_in: 0 }), "failed", "no bearer token"],
    ["answers too much", tokenReply("t", { x: "x".repeat(70_000) }), "failed", "above 65536 bytes"],
    [
      "ends the connection",
      (_call, response) => void response.socket?.destroy(),
      "failed",
      "cannot be reached",
    ],
  ])("%s gives no token, and no secret is shown", async (_name, reply, outcome, reason) => {
    server.reply = reply;
    const message = await failure();
    expect(outcomes).toEqual([`tracker ${outcome}`]);
    expect(message).toMatch(/^Provider tracker: /);
    const logged = JSON.stringify(log.lines);
    expect(logged).toContain(reason);
    expect(message + logged).not.toContain(CLIENT_SECRET);
    expect(server.calls).toHaveLength(1);
    // Requests do not retry: the background does.
    await failure();
    expect(server.calls).toHaveLength(1);
  });

  test("is asked again after a while, later after each failure, until it answers", async () => {
    server.reply = status(503);
    await failure();
    const delays: (number | undefined)[] = [clock.pending[0]];
    for (let times = 2; times <= 4; times++) {
      clock.advance(clock.pending[0] ?? 0);
      await asked(times);
      await expect.poll(() => clock.pending.length).toBe(1);
      delays.push(clock.pending[0]);
    }
    expect(delays).toEqual([750, 1_500, 3_000, 6_000]);
    server.reply = tokenReply("t1");
    clock.advance(6_000);
    expect(await header()).toBe("authorization: Bearer t1");
  });

  test("asks to wait is left alone for that time", async () => {
    server.reply = status(503, "", { "retry-after": "120" });
    await failure();
    expect(clock.pending).toEqual([120_000]);
  });

  test("does not answer ends by the time limit", async () => {
    server.reply = () => undefined;
    const message = failure();
    await expect.poll(() => server.calls.length).toBe(1);
    clock.advance(10_000);
    expect(await message).toContain("no access token is available");
    expect(JSON.stringify(log.lines)).toContain("did not answer within 10000 ms");
  });

  test("has a certificate of another authority gets no secret", async () => {
    const other = await TestTokenServer.start();
    writeFileSync(path.join(dir, "other.pem"), other.authorityPem);
    await other.close();
    credentials = withBundle("other.pem");
    await failure();
    expect(server.calls).toEqual([]);
    expect(JSON.stringify(log.lines)).toContain("localhost");
  });

  test("has a certificate for another name gets no secret", async () => {
    const other = await TestTokenServer.start("auth.example.com");
    writeFileSync(path.join(dir, "other.pem"), other.authorityPem);
    credentials = withBundle("other.pem");
    await failure(mcp(oauth({ tokenUrl: other.url })));
    expect(other.calls).toEqual([]);
    await other.close();
  });

  test("is not encrypted is not asked", async () => {
    const tokenUrl = server.url.replace("https:", "http:");
    await failure(mcp(oauth({ tokenUrl })));
    expect(server.calls).toEqual([]);
    expect(JSON.stringify(log.lines)).toContain("must be an https URL");
  });
});

test("a missing bundle of certificates is explained", async () => {
  credentials = withBundle("missing.pem");
  await failure();
  expect(JSON.stringify(log.lines)).toMatch(/CA bundle .*missing\.pem cannot be read/);
});

test("fixed credentials are sent as they are", async () => {
  const value = new Secret("Token abc");
  expect(await header(mcp({ kind: "none" }))).toBeUndefined();
  expect(await header(mcp({ kind: "header", name: "x-key", value }))).toBe("x-key: Token abc");
});
