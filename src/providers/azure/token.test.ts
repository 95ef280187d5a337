/** Tokens of Entra. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Secret } from "../../platform/secret.ts";
import { context, FakeServer } from "../testing.ts";
import { TokenExchangeError } from "../token-refresher.ts";
import { type Application, exchange, readApplication } from "./token.ts";

const SECRET: Application = {
  tenantId: "the-tenant",
  clientId: "the-client",
  proof: { kind: "secret", value: new Secret("the-secret") },
};
const HOUR_MS = 3_600_000;

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(path.join(os.tmpdir(), "svc-entra-"));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const good = (): Response => Response.json({ access_token: "tok", expires_in: 3600 });

function asked(
  respond: () => Response,
  application = SECRET,
): {
  readonly server: FakeServer;
  readonly token: ReturnType<typeof exchange>;
  readonly now: number;
} {
  const server = new FakeServer(respond);
  const given = context({ fetch: server.fetch });
  const token = exchange(given, application, "the-audience", new AbortController().signal);
  token.catch(() => undefined);
  return { server, token, now: given.clock.now() };
}

async function failure(respond: () => Response, application = SECRET): Promise<TokenExchangeError> {
  const { token } = asked(respond, application);
  const error: unknown = await token.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof TokenExchangeError)) throw new Error("no TokenExchangeError");
  return error;
}

describe("a token", () => {
  test("is asked for with the secret", async () => {
    const { server, token, now } = asked(good);
    const { token: value, expiresAt } = await token;
    expect([value.reveal(), expiresAt]).toEqual(["tok", now + HOUR_MS]);
    expect(server.calls).toHaveLength(1);
    const [call] = server.calls;
    expect(call).toMatchObject({
      method: "POST",
      url: "https://login.microsoftonline.com/the-tenant/oauth2/v2.0/token",
    });
    expect(call?.headers.get("content-type")).toBe("application/x-www-form-urlencoded");
    expect(Object.fromEntries(new URLSearchParams(call?.body))).toEqual({
      grant_type: "client_credentials",
      client_id: "the-client",
      scope: "the-audience",
      client_secret: "the-secret",
    });
  });

  test("is asked for by POST, until the signal says otherwise", async () => {
    let init: object = {};
    const given = context({
      fetch: (_url, told) => {
        init = told;
        return Promise.resolve(good());
      },
    });
    const { signal } = new AbortController();
    await exchange(given, SECRET, "the-audience", signal);
    expect(init).toMatchObject({ method: "POST", signal });
  });

  test("is asked for with the content of a file, read each time", async () => {
    const file = path.join(dir, "token");
    const proof = { kind: "file", path: file } as const;
    for (const text of ["one", " two\n"]) {
      writeFileSync(file, text);
      const { server, token } = asked(good, { ...SECRET, proof });
      await token;
      const sent = new URLSearchParams(server.calls[0]?.body);
      expect(sent.get("client_assertion")).toBe(text.trim());
      expect(sent.get("client_assertion_type")).toBe(
        "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
      );
      expect(sent.has("client_secret")).toBe(false);
    }
  });

  test.each(["", "two words", "line\nend"])("is not asked for with a file of %j", async (text) => {
    const file = path.join(dir, "token");
    writeFileSync(file, text);
    const error = await failure(good, { ...SECRET, proof: { kind: "file", path: file } });
    expect(error.message).toContain(`no token can be read from ${file}`);
  });

  test("is used for 28 hours at most", async () => {
    const { token, now } = asked(() => Response.json({ access_token: "t", expires_in: 1e9 }));
    expect((await token).expiresAt).toBe(now + 28 * HOUR_MS);
  });
});

describe("a refusal", () => {
  test.each([
    [400, true],
    [401, true],
    [499, true],
    [408, false],
    [429, false],
    [500, false],
    [503, false],
    [304, false],
  ])("of %i is final: %s", async (status, refused) => {
    const error = await failure(() => new Response(null, { status }));
    expect(error.refused).toBe(refused);
    expect(error.message.includes("clientSecret")).toBe(refused);
  });

  test.each([
    ["30", 30_000],
    ["soon", undefined],
    [undefined, undefined],
  ])("that asks to wait for %s", async (after, ms) => {
    const headers = after === undefined ? {} : { "retry-after": after };
    const error = await failure(() => new Response("", { status: 503, headers }));
    expect(error.retryAfterMs).toBe(ms);
  });
});

test.each<[name: string, body: string]>([
  ["not JSON", "{"],
  ["null", "null"],
  ["without a token", '{"expires_in":3600}'],
  ["with a token that is no text", '{"access_token":1,"expires_in":3600}'],
  ["with a token of several words", '{"access_token":"a b","expires_in":3600}'],
  ["with a token that ends a header", '{"access_token":"a\\r\\nb","expires_in":3600}'],
  ["without a lifetime", '{"access_token":"t"}'],
  ["with no lifetime", '{"access_token":"t","expires_in":0}'],
  ["that is very long", `{"access_token":"t","expires_in":3600,"x":"${"x".repeat(1 << 20)}"}`],
])("an answer %s holds no token", async (_name, body) => {
  const error = await failure(() => new Response(body));
  expect(error.message).toContain("holds no token");
});

describe("the application of a Secret", () => {
  const ids = {
    tenantId: "01234567-89ab-cdef-0123-456789abcdef",
    clientId: "fedcba98-89ab-cdef-0123-456789abcdef",
  };
  const read = (
    authType: string,
    secrets: Record<string, string>,
    config: Record<string, string> = {},
  ): Application => readApplication(context({ authType, secrets: { ...ids, ...secrets }, config }));

  test("is proven by its secret, without the spaces around it", () => {
    const { proof, ...rest } = read("client-secret", { clientSecret: " the-secret\n" });
    expect(rest).toEqual(ids);
    expect(proof.kind === "secret" && proof.value.reveal()).toBe("the-secret");
  });

  test("is proven by a file", () => {
    const usual = "/var/run/secrets/azure/tokens/azure-identity-token";
    expect(read("federated-token", {}).proof).toEqual({ kind: "file", path: usual });
    expect(read("federated-token", {}, { tokenFile: "/t" }).proof).toEqual({
      kind: "file",
      path: "/t",
    });
  });

  test.each<[name: string, read: () => Application, message: string]>([
    ["no tenant", () => read("federated-token", { tenantId: "" }), "key tenantId must"],
    [
      "more than a tenant",
      () => read("federated-token", { tenantId: `${ids.tenantId}/x` }),
      "tenantId",
    ],
    [
      "more before a tenant",
      () => read("federated-token", { tenantId: `x/${ids.tenantId}` }),
      "tenantId",
    ],
    ["what is no client", () => read("federated-token", { clientId: "x" }), "key clientId must"],
    ["no secret", () => read("client-secret", {}), "key clientSecret must"],
    [
      "a secret of two words",
      () => read("client-secret", { clientSecret: "two words" }),
      "clientSecret",
    ],
    ["a short secret", () => read("client-secret", { clientSecret: "short" }), "clientSecret"],
    ["another type", () => read("password", {}), "is client-secret or federated-token"],
    ["a relative file", () => read("federated-token", {}, { tokenFile: "t" }), "absolute path"],
  ])("is refused with %s", (_name, reading, message) => {
    expect(reading).toThrow(message);
  });
});
