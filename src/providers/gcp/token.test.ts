/** Google's tokens: by a service account's key, and by an external token. */
import { generateKeyPairSync, verify } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { context, FakeServer, type PluginCall } from "../testing.ts";
import { TokenExchangeError } from "../token-refresher.ts";
import { exchangeExternalAccount, readExternalAccount } from "./external-account.ts";
import { exchangeServiceAccount, post, readServiceAccount, TOKEN_URL, tokenOf } from "./token.ts";

const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 });
const PEM = rsa.privateKey.export({ type: "pkcs8", format: "pem" }).toString();
const EC = generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" });
const HOUR_MS = 3_600_000;
const { signal } = new AbortController();

let dir: string;
beforeAll(() => {
  dir = mkdtempSync(path.join(os.tmpdir(), "svc-google-"));
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const good = (): Response => Response.json({ access_token: "tok", expires_in: 3600 });

async function failure(promise: Promise<unknown>): Promise<TokenExchangeError> {
  const error: unknown = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof TokenExchangeError)) throw new Error("no TokenExchangeError");
  return error;
}

describe("a service account", () => {
  const ACCOUNT = {
    type: "service_account",
    client_email: "a@p.iam.gserviceaccount.com",
    private_key_id: "the-key",
    private_key: PEM,
    token_uri: TOKEN_URL,
  };
  const given = (more: object, server?: FakeServer): ReturnType<typeof context> =>
    context({
      secrets: { serviceAccount: JSON.stringify({ ...ACCOUNT, ...more }) },
      ...(server !== undefined && { fetch: server.fetch }),
    });

  test.each<[name: string, more: object, message: string]>([
    ["another type", { type: "user" }, "its type is not service_account"],
    ["no address", { client_email: undefined }, "has no client_email"],
    ["what is no address", { client_email: "a b" }, "has no client_email"],
    ["another server", { token_uri: "https://evil.example/token" }, "another token_uri"],
    ["no key", { private_key: undefined }, "no private_key that can be read"],
    ["what is no key", { private_key: "x" }, "no private_key that can be read"],
    ["a key of another kind", { private_key: EC }, "private_key that is not RSA"],
  ])("with %s is refused", (_name, more, message) => {
    expect(() => readServiceAccount(given(more))).toThrow(message);
  });

  test.each(["", "{", "[]", "null", "1"])("that is %j is refused", (serviceAccount) => {
    expect(() => readServiceAccount(context({ secrets: { serviceAccount } }))).toThrow(
      "must be the JSON file that Google Cloud gave",
    );
  });

  test("needs no id of its key, and no server", () => {
    const account = readServiceAccount(given({ private_key_id: 1, token_uri: undefined }));
    expect(account).toMatchObject({ email: ACCOUNT.client_email, keyId: undefined });
  });

  test.each([
    ["the-key", { alg: "RS256", typ: "JWT", kid: "the-key" }],
    [undefined, { alg: "RS256", typ: "JWT" }],
  ])("signs what Google exchanges, with the key %s", async (keyId, header) => {
    const server = new FakeServer(good);
    const ctx = given({ private_key_id: keyId }, server);
    const token = await exchangeServiceAccount(ctx, readServiceAccount(ctx), "the-scopes", signal);
    expect([token.token.reveal(), token.expiresAt]).toEqual(["tok", ctx.clock.now() + HOUR_MS]);
    const [call] = server.calls;
    expect(call).toMatchObject({ url: TOKEN_URL, method: "POST" });
    const sent = new URLSearchParams(call?.body);
    expect(sent.get("grant_type")).toBe("urn:ietf:params:oauth:grant-type:jwt-bearer");
    const [head = "", claims = "", signature = ""] = (sent.get("assertion") ?? "").split(".");
    const read = (part: string): unknown => JSON.parse(Buffer.from(part, "base64url").toString());
    const seconds = Math.floor(ctx.clock.now() / 1_000);
    expect(read(head)).toEqual(header);
    expect(read(claims)).toEqual({
      iss: ACCOUNT.client_email,
      scope: "the-scopes",
      aud: TOKEN_URL,
      iat: seconds,
      exp: seconds + 3_600,
    });
    const bytes = Buffer.from(`${head}.${claims}`);
    const signed = Buffer.from(signature, "base64url");
    expect(verify("RSA-SHA256", bytes, rsa.publicKey, signed)).toBe(true);
  });
});

describe("a token server", () => {
  const ask = (
    respond: () => Response,
    body: URLSearchParams | string = "{}",
  ): ReturnType<typeof post> =>
    post({ fetch: new FakeServer(respond).fetch }, "https://sts.example/v1", {
      body,
      signal,
      advice: "the advice",
    });

  test("is asked in the form of the body", async () => {
    const inits: RequestInit[] = [];
    const fetch = (_url: string, init: RequestInit): Promise<Response> => {
      inits.push(init);
      return Promise.resolve(good());
    };
    const headers = { authorization: "Bearer x" };
    await post({ fetch }, TOKEN_URL, { body: "{}", headers, signal, advice: "" });
    await post({ fetch }, TOKEN_URL, { body: new URLSearchParams("a=b"), signal, advice: "" });
    const common = { method: "POST", signal };
    expect(inits).toEqual([
      { ...common, body: "{}", headers: { "content-type": "application/json", ...headers } },
      { ...common, body: "a=b", headers: { "content-type": "application/x-www-form-urlencoded" } },
    ]);
  });

  test.each([
    [400, true],
    [401, true],
    [408, false],
    [429, false],
    [499, true],
    [500, false],
    [304, false],
  ])("that answers %i refuses for good: %s", async (status, refused) => {
    const error = await failure(ask(() => new Response(null, { status })));
    expect(error.refused).toBe(refused);
    expect(error.message.includes("the advice")).toBe(refused);
    expect(error.message).toContain(`sts.example answered ${status}`);
  });

  test.each([
    ["30", 30_000],
    ["soon", undefined],
    [undefined, undefined],
  ])("that asks to wait for %s", async (after, ms) => {
    const headers = after === undefined ? {} : { "retry-after": after };
    const error = await failure(ask(() => new Response("", { status: 503, headers })));
    expect(error.retryAfterMs).toBe(ms);
  });

  test.each(["", "{", "null", "1", `{"x":"${"x".repeat(256 * 1024)}"}`])(
    "that does not answer with an object is told",
    async (text) => {
      const error = await failure(ask(() => new Response(text)));
      expect(error.message).toBe("sts.example did not answer with JSON");
    },
  );

  test.each<[name: string, answer: Record<string, unknown>]>([
    ["no token", { expires_in: 1 }],
    ["an empty token", { access_token: "", expires_in: 1 }],
    ["a token of two words", { access_token: "a b", expires_in: 1 }],
    ["a token that ends a header", { access_token: "a\r\nb", expires_in: 1 }],
    ["no lifetime", { access_token: "t" }],
    ["a lifetime of nothing", { access_token: "t", expires_in: 0 }],
  ])("that answers with %s holds no token", (_name, answer) => {
    expect(() => tokenOf(answer, 0)).toThrow("holds no token");
  });

  test("is believed for twelve hours at most", () => {
    const answer = (expires: number): object => ({ access_token: "t", expires_in: expires });
    const at = (expires: number): number =>
      tokenOf(answer(expires) as Record<string, unknown>, 1_000).expiresAt;
    expect(at(60)).toBe(61_000);
    expect(at(1e9)).toBe(1_000 + 12 * HOUR_MS);
  });
});

describe("an external account", () => {
  const file = (): string => path.join(dir, "token");
  const config = (more: object = {}): object => ({
    type: "external_account",
    audience: "//iam.googleapis.com/projects/1/pool",
    subject_token_type: "urn:ietf:params:oauth:token-type:jwt",
    token_url: "https://sts.googleapis.com/v1/token",
    credential_source: { file: file() },
    ...more,
  });
  const IMPERSONATION =
    "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/a@p.iam.gserviceaccount.com:generateAccessToken";
  const given = (more: object, server?: FakeServer): ReturnType<typeof context> =>
    context({
      secrets: { externalAccount: JSON.stringify(config(more)) },
      ...(server !== undefined && { fetch: server.fetch }),
    });
  const JSON_FILE = { format: { type: "json", subject_token_field_name: "tok" } };

  test.each<[name: string, more: object, message: string]>([
    ["another type", { type: "service_account" }, "its type is not external_account"],
    ["no audience", { audience: 1 }, "has no audience"],
    ["another audience", { audience: "https://evil.example" }, "has no audience"],
    ["no type of its token", { subject_token_type: 1 }, "has no subject_token_type"],
    ["another type of its token", { subject_token_type: "aws" }, "has no subject_token_type"],
    ["another server", { token_url: "https://evil.example" }, "has another token_url"],
    ["no source", { credential_source: null }, "has no credential_source.file"],
    [
      "a source of another kind",
      { credential_source: { url: "x" } },
      "has no credential_source.file",
    ],
    ["a relative file", { credential_source: { file: "t" } }, "has no credential_source.file"],
    [
      "a file of JSON without a member",
      { credential_source: { file: "/t", format: { type: "json" } } },
      "subject_token_field_name",
    ],
    ["an impersonation that is no text", { service_account_impersonation_url: 1 }, "impersonation"],
    [
      "an impersonation elsewhere",
      { service_account_impersonation_url: `${IMPERSONATION}/x` },
      "impersonation",
    ],
    [
      "an impersonation by another host",
      { service_account_impersonation_url: `https://evil.example/${IMPERSONATION}` },
      "impersonation",
    ],
  ])("with %s is refused", (_name, more, message) => {
    expect(() => readExternalAccount(given(more))).toThrow(message);
  });

  test("is exchanged for a token, once", async () => {
    writeFileSync(file(), " the-subject\n");
    const server = new FakeServer(good);
    const ctx = given({}, server);
    const token = await exchangeExternalAccount(ctx, readExternalAccount(ctx), "a b", signal);
    expect(token.token.reveal()).toBe("tok");
    expect(server.calls.map(({ url }) => url)).toEqual(["https://sts.googleapis.com/v1/token"]);
    expect(Object.fromEntries(new URLSearchParams(server.calls[0]?.body))).toEqual({
      grant_type: "urn:ietf:params:oauth:grant-type:token-exchange",
      audience: "//iam.googleapis.com/projects/1/pool",
      scope: "a b",
      requested_token_type: "urn:ietf:params:oauth:token-type:access_token",
      subject_token: "the-subject",
      subject_token_type: "urn:ietf:params:oauth:token-type:jwt",
    });
  });

  const impersonated = async (
    answer: object,
    file_ = JSON_FILE,
  ): Promise<FakeServer & { expiresAt?: number }> => {
    writeFileSync(file(), JSON.stringify({ tok: "the-subject" }));
    const respond = ({ url }: PluginCall): Response =>
      url === IMPERSONATION ? Response.json(answer) : good();
    const server: FakeServer & { expiresAt?: number } = new FakeServer(respond);
    const more = {
      credential_source: { file: file(), ...file_ },
      service_account_impersonation_url: IMPERSONATION,
    };
    const ctx = given(more, server);
    const token = await exchangeExternalAccount(ctx, readExternalAccount(ctx), "a b", signal);
    expect(token.token.reveal()).toBe("own");
    server.expiresAt = token.expiresAt - ctx.clock.now();
    return server;
  };

  test("is exchanged again for a token of a service account", async () => {
    const server = await impersonated({ accessToken: "own", expireTime: "2999-01-01T00:00:00Z" });
    const [first, second] = server.calls;
    const sent = new URLSearchParams(first?.body);
    expect(sent.get("scope")).toBe("https://www.googleapis.com/auth/cloud-platform");
    expect(sent.get("subject_token")).toBe("the-subject");
    expect(second?.headers.get("authorization")).toBe("Bearer tok");
    expect(JSON.parse(second?.body ?? "")).toEqual({ scope: ["a", "b"], lifetime: "3600s" });
    expect(server.expiresAt).toBe(HOUR_MS);
  });

  test("has a token until the time that Google says, if that is sooner", async () => {
    const soon = new Date(context().clock.now() + 60_000).toISOString();
    expect((await impersonated({ accessToken: "own", expireTime: soon })).expiresAt).toBe(60_000);
  });

  test.each<[answer: object]>([
    [{ expireTime: "2999-01-01T00:00:00Z" }],
    [{ accessToken: "a b", expireTime: "2999-01-01T00:00:00Z" }],
    [{ accessToken: "own" }],
    [{ accessToken: "own", expireTime: "soon" }],
    [{ accessToken: "own", expireTime: 1 }],
  ])("has no token of a service account by %j", async (answer) => {
    const error = await failure(impersonated(answer));
    expect(error.message).toBe("the answer holds no token of the service account");
  });

  test.each<[name: string, text: string | undefined, source: object]>([
    ["missing", undefined, {}],
    ["empty", " ", {}],
    ["not JSON", "{", JSON_FILE],
    ["without the member", "{}", JSON_FILE],
    ["of a member that is no text", '{"tok":1}', JSON_FILE],
  ])("has no token if its file is %s", async (_name, text, source) => {
    if (text === undefined) rmSync(file(), { force: true });
    else writeFileSync(file(), text);
    const ctx = given({ credential_source: { file: file(), ...source } });
    const error = await failure(
      exchangeExternalAccount(ctx, readExternalAccount(ctx), "a", signal),
    );
    expect(error.message).toContain(`no token can be read from ${file()}`);
  });
});
