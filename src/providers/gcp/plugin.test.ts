import { createPublicKey, verify } from "node:crypto";
import { writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { ConfigError, InjectionError } from "../contract.ts";
import { context, FakeServer, request } from "../testing.ts";
import { EXTERNAL_ACCOUNT, SERVICE_ACCOUNT } from "./contract-sample.ts";
import { plugin } from "./plugin.ts";

const call = request("GET https://pubsub.googleapis.com/v1/projects/p-1/topics");
const MINUTE = 60_000;

function tokens(): FakeServer {
  let n = 0;
  return new FakeServer(({ url }) => {
    n += 1;
    return url.includes("iamcredentials")
      ? Response.json({
          accessToken: `ya29.${n}`,
          expireTime: new Date(1_800_000_000_000 + 3_600_000).toISOString(),
        })
      : Response.json({ access_token: `ya29.${n}`, expires_in: 3600 });
  });
}

function made(
  authType: string,
  secret: object,
  config: Record<string, string> = {},
  server = tokens(),
) {
  const world = context({
    authType,
    secrets: {
      [authType === "service-account" ? "serviceAccount" : "externalAccount"]:
        JSON.stringify(secret),
    },
    config,
    fetch: server.fetch,
  });
  return { world, server, instance: plugin.create(world) };
}

describe("a service account", () => {
  test("signs a JWT, and its token goes on requests", async () => {
    const { instance, server, world } = made("service-account", SERVICE_ACCOUNT);
    await instance.start();
    expect(server.calls.map(({ url }) => url)).toEqual(["https://oauth2.googleapis.com/token"]);
    const form = new URLSearchParams(server.calls[0]?.body);
    expect(form.get("grant_type")).toBe("urn:ietf:params:oauth:grant-type:jwt-bearer");
    const [header = "", claims = "", signature = ""] = form.get("assertion")?.split(".") ?? [];
    expect(JSON.parse(Buffer.from(header, "base64url").toString())).toEqual({
      alg: "RS256",
      typ: "JWT",
      kid: "0123456789abcdef",
    });
    const seconds = world.clock.now() / 1000;
    expect(JSON.parse(Buffer.from(claims, "base64url").toString())).toEqual({
      iss: SERVICE_ACCOUNT.client_email,
      scope: "https://www.googleapis.com/auth/cloud-platform",
      aud: "https://oauth2.googleapis.com/token",
      iat: seconds,
      exp: seconds + 3600,
    });
    expect(
      verify(
        "RSA-SHA256",
        Buffer.from(`${header}.${claims}`),
        createPublicKey(SERVICE_ACCOUNT.private_key),
        Buffer.from(signature, "base64url"),
      ),
    ).toBe(true);
    expect(await instance.injectCredentials(call)).toEqual({
      set: [["authorization", "Bearer ya29.1"]],
      remove: [],
      setQuery: [],
    });
    await instance.stop();
  });

  test("its token is renewed about every 50 minutes, and once for all who ask", async () => {
    const { instance, server, world } = made("service-account", SERVICE_ACCOUNT);
    await Promise.all([
      instance.start(),
      instance.refreshToken(),
      instance.injectCredentials(call),
    ]);
    expect(server.calls).toHaveLength(1);
    await world.clock.advanceAndSettle(45 * MINUTE);
    expect(server.calls).toHaveLength(1);
    await world.clock.advanceAndSettle(6 * MINUTE);
    expect(server.calls).toHaveLength(2);
    expect((await instance.injectCredentials(call)).set).toEqual([
      ["authorization", "Bearer ya29.2"],
    ]);
    await instance.stop();
  });

  test("the old token is used to its end while Google is away", async () => {
    const { instance, server, world } = made("service-account", SERVICE_ACCOUNT);
    await instance.start();
    server.respond = () => new Response("", { status: 503 });
    await world.clock.advanceAndSettle(58 * MINUTE);
    expect((await instance.injectCredentials(call)).set).toEqual([
      ["authorization", "Bearer ya29.1"],
    ]);
    await world.clock.advanceAndSettle(3 * MINUTE);
    await expect(instance.injectCredentials(call)).rejects.toThrow(InjectionError);
    await instance.stop();
  });

  test.each([
    "https://oauth2.googleapis.com/",
    "https://sts.googleapis.com/",
    "https://evil.example/",
    "https://reports.storage.googleapis.com/x",
  ])("%s gets no token, even in audit mode", async (url) => {
    const { instance } = made("service-account", SERVICE_ACCOUNT);
    await instance.start();
    await expect(instance.injectCredentials(request(`GET ${url}`))).rejects.toThrow(InjectionError);
    await instance.stop();
  });

  test("scopes can be narrower", async () => {
    const scopes =
      "https://www.googleapis.com/auth/devstorage.read_only https://www.googleapis.com/auth/pubsub";
    const { instance, server } = made("service-account", SERVICE_ACCOUNT, { scopes });
    await instance.start();
    const claims = new URLSearchParams(server.calls[0]?.body).get("assertion")?.split(".")[1] ?? "";
    expect(
      (JSON.parse(Buffer.from(claims, "base64url").toString()) as { readonly scope: string }).scope,
    ).toBe(scopes);
    await instance.stop();
  });

  test("another type of credential is an error that names both", () => {
    expect(() => made("token", SERVICE_ACCOUNT)).toThrow("service-account or external-account");
  });

  test.each([
    [{ ...SERVICE_ACCOUNT, type: "authorized_user" }, {}],
    [{ ...SERVICE_ACCOUNT, client_email: "" }, {}],
    [{ ...SERVICE_ACCOUNT, private_key: "no" }, {}],
    [{ ...SERVICE_ACCOUNT, token_uri: "https://evil.example/token" }, {}],
    [SERVICE_ACCOUNT, { scopes: "cloud-platform" }],
    [SERVICE_ACCOUNT, { scopes: "" }],
    [SERVICE_ACCOUNT, { bucketProjects: "reports" }],
    [SERVICE_ACCOUNT, { bucketProjects: "reports=project-1 x" }],
    [SERVICE_ACCOUNT, { bucketProjects: "reports=Project" }],
  ])("what cannot work is an error (%#)", (secret, config) => {
    expect(() => made("service-account", secret, config as Record<string, string>)).toThrow(
      ConfigError,
    );
  });
});

describe("a federated identity", () => {
  const impersonated = {
    ...EXTERNAL_ACCOUNT,
    service_account_impersonation_url:
      "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/a@p.iam." +
      "gserviceaccount.com:generateAccessToken",
  };

  test("exchanges the file's token, read anew each time", async () => {
    const { instance, server } = made("external-account", EXTERNAL_ACCOUNT);
    await instance.start();
    expect(Object.fromEntries(new URLSearchParams(server.calls[0]?.body))).toMatchObject({
      audience: EXTERNAL_ACCOUNT.audience,
      subject_token: "federated.subject.token",
      subject_token_type: "urn:ietf:params:oauth:token-type:jwt",
      scope: "https://www.googleapis.com/auth/cloud-platform",
    });
    writeFileSync(EXTERNAL_ACCOUNT.credential_source.file, "second");
    await instance.refreshToken();
    expect(new URLSearchParams(server.calls[1]?.body).get("subject_token")).toBe("second");
    writeFileSync(EXTERNAL_ACCOUNT.credential_source.file, "federated.subject.token\n");
    await instance.stop();
  });

  test("may become a service account", async () => {
    const { instance, server } = made("external-account", impersonated);
    await instance.start();
    expect(server.calls.map(({ url }) => url)).toEqual([
      EXTERNAL_ACCOUNT.token_url,
      impersonated.service_account_impersonation_url,
    ]);
    expect(server.calls[1]?.headers.get("authorization")).toBe("Bearer ya29.1");
    expect((await instance.injectCredentials(call)).set).toEqual([
      ["authorization", "Bearer ya29.2"],
    ]);
    await instance.stop();
  });

  test("a file that is not there is told by its path", async () => {
    const { instance, world } = made("external-account", {
      ...EXTERNAL_ACCOUNT,
      credential_source: { file: "/nowhere/token" },
    });
    await instance.start();
    await expect(instance.injectCredentials(call)).rejects.toThrow(InjectionError);
    expect(world.lines.join()).toContain("/nowhere/token");
    await instance.stop();
  });

  test.each([
    { ...EXTERNAL_ACCOUNT, token_url: "https://evil.example/token" },
    { ...EXTERNAL_ACCOUNT, credential_source: { url: "http://169.254.169.254/" } },
    { ...EXTERNAL_ACCOUNT, credential_source: { executable: { command: "sh" } } },
    { ...EXTERNAL_ACCOUNT, audience: "x" },
    {
      ...impersonated,
      service_account_impersonation_url: "https://evil.example/:generateAccessToken",
    },
  ])("what cannot work is an error (%#)", (secret) => {
    expect(() => made("external-account", secret)).toThrow(ConfigError);
  });
});
