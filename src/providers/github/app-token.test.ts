/** Tokens of a GitHub App's installation. */
import { generateKeyPairSync, verify } from "node:crypto";
import { describe, expect, test } from "vitest";
import { context, FakeServer } from "../testing.ts";
import { TokenExchangeError } from "../token-refresher.ts";
import {
  type AppCredential,
  appJwt,
  fetchInstallationToken,
  readAppCredential,
} from "./app-token.ts";

const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 });
const PEM = rsa.privateKey.export({ type: "pkcs8", format: "pem" }).toString();
const OTHER = generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" });
const GOOD = { appId: "Iv1.abc-1_2", installationId: "42", privateKey: PEM };
const HOUR_MS = 3_600_000;

const read = (more: Record<string, string>): AppCredential =>
  readAppCredential(context({ secrets: { ...GOOD, ...more } }));

describe("the Secret of an app", () => {
  test("is read without the spaces around its values", () => {
    expect(
      read({ appId: " 1\n", installationId: " 42\n", privateKey: `\n${PEM}\n` }),
    ).toMatchObject({
      appId: "1",
      installationId: "42",
    });
  });

  test.each<[name: string, more: Record<string, string>, message: string]>([
    ["no app", { appId: "" }, "key appId must"],
    ["an app of two words", { appId: "a b" }, "key appId must"],
    ["a path as its installation", { installationId: "42/x" }, "key installationId must"],
    ["a word as its installation", { installationId: "x42" }, "key installationId must"],
    ["what is no key", { privateKey: "x" }, "key privateKey is no private key"],
    ["a key of another kind", { privateKey: String(OTHER) }, "must be an RSA key"],
  ])("is refused with %s", (_name, more, message) => {
    expect(() => read(more)).toThrow(message);
  });
});

test("the app's JWT begins a minute ago, and is valid for nine minutes", () => {
  const [head = "", claims = "", signature = ""] = appJwt(read({}), 1_000_500).split(".");
  const part = (text: string): unknown => JSON.parse(Buffer.from(text, "base64url").toString());
  expect(part(head)).toEqual({ alg: "RS256", typ: "JWT" });
  expect(part(claims)).toEqual({ iat: 940, exp: 1_540, iss: GOOD.appId });
  const bytes = Buffer.from(`${head}.${claims}`);
  expect(verify("RSA-SHA256", bytes, rsa.publicKey, Buffer.from(signature, "base64url"))).toBe(
    true,
  );
});

describe("an installation's token", () => {
  async function fetched(
    respond: () => Response,
  ): Promise<{ readonly token: string; readonly lifetime: number; readonly server: FakeServer }> {
    const server = new FakeServer(respond);
    const ctx = context({ fetch: server.fetch });
    const { signal } = new AbortController();
    const found = await fetchInstallationToken(ctx, "https://api.example", read({}), signal);
    return { token: found.token.reveal(), lifetime: found.expiresAt - ctx.clock.now(), server };
  }
  async function failure(respond: () => Response): Promise<TokenExchangeError> {
    const error: unknown = await fetched(respond).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    if (!(error instanceof TokenExchangeError)) throw new Error("no TokenExchangeError");
    return error;
  }
  const answer = (body: object, headers: Record<string, string> = {}): Response =>
    Response.json(body, { status: 201, headers });
  const now = context().clock.now();
  const EXPIRES = new Date(now + HOUR_MS).toISOString();

  test("is asked for with the JWT", async () => {
    const { server, token } = await fetched(() => answer({ token: "tok", expires_at: EXPIRES }));
    expect(token).toBe("tok");
    const [call] = server.calls;
    expect(call).toMatchObject({
      url: "https://api.example/app/installations/42/access_tokens",
      method: "POST",
    });
    expect(Object.fromEntries(call?.headers ?? [])).toEqual({
      accept: "application/vnd.github+json",
      authorization: `Bearer ${appJwt(read({}), now)}`,
      "user-agent": "svc",
      "x-github-api-version": "2022-11-28",
    });
  });

  test("is asked for by POST, until the signal says otherwise", async () => {
    let init: object = {};
    const fetch = (_url: string, told: object): Promise<Response> => {
      init = told;
      return Promise.resolve(answer({ token: "tok", expires_at: EXPIRES }));
    };
    const { signal } = new AbortController();
    await fetchInstallationToken(context({ fetch }), "https://api.example", read({}), signal);
    expect(init).toMatchObject({ method: "POST", signal });
  });

  test.each([
    ["without the server's time", {}, HOUR_MS],
    ["by the server's time", { date: new Date(now + 1_800_000).toUTCString() }, HOUR_MS / 2],
    ["with a time that is none", { date: "x" }, HOUR_MS],
  ])("lives %s", async (_name, headers, lifetime) => {
    const found = await fetched(() => answer({ token: "tok", expires_at: EXPIRES }, headers));
    expect(found.lifetime).toBe(lifetime);
  });

  test.each<[status: number, headers: Record<string, string>, refused: boolean]>([
    [400, {}, true],
    [401, {}, true],
    [403, { "x-ratelimit-remaining": "1" }, true],
    [403, { "x-ratelimit-remaining": "0" }, false],
    [403, { "retry-after": "30" }, false],
    [408, {}, false],
    [429, {}, false],
    [499, {}, true],
    [500, {}, false],
    [200, {}, false],
  ])("is refused for good by %i with %j: %s", async (status, headers, refused) => {
    const error = await failure(() => new Response("", { status, headers }));
    expect(error.refused).toBe(refused);
    expect(error.message.includes("installationId")).toBe(refused);
    expect(error.retryAfterMs).toBe(headers["retry-after"] === undefined ? undefined : 30_000);
  });

  test.each<[name: string, body: string]>([
    ["not JSON", "{"],
    ["null", "null"],
    ["without a token", JSON.stringify({ expires_at: EXPIRES })],
    ["with a token of two words", JSON.stringify({ token: "a b", expires_at: EXPIRES })],
    ["with a token that ends a header", JSON.stringify({ token: "a\r\nb", expires_at: EXPIRES })],
    ["without an end", JSON.stringify({ token: "tok" })],
    ["with an end that is none", JSON.stringify({ token: "tok", expires_at: "x" })],
    ["with an end that is no text", JSON.stringify({ token: "tok", expires_at: 1 })],
    [
      "that is very long",
      JSON.stringify({ token: "tok", expires_at: EXPIRES, x: "x".repeat(1 << 18) }),
    ],
  ])("is not in an answer %s", async (_name, body) => {
    const error = await failure(() => new Response(body, { status: 201 }));
    expect(error.message).toBe("GitHub's answer holds no installation token");
  });
});
