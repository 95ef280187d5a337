import { describe, expect, test } from "vitest";
import { ConfigError, InjectionError } from "../contract.ts";
import { context, FakeServer, request } from "../testing.ts";
import { IDS, sample, SUBSCRIPTION } from "./contract-sample.ts";
import { plugin } from "./plugin.ts";

const MINUTE = 60_000;
const arm = request(`GET https://management.azure.com/subscriptions/${SUBSCRIPTION}`);
const blob = request("GET https://reports.blob.core.windows.net/con/a");
const vault = request("GET https://vault-1.vault.azure.net/secrets/db");

function made(
  authType: string,
  config: Record<string, string> = {},
  secrets: Record<string, string> = {},
) {
  let n = 0;
  const server = new FakeServer(() =>
    Response.json({ access_token: `token-${(n += 1)}`, expires_in: 3599 }),
  );
  const auth = sample.auth[authType] ?? { secrets: {} };
  const world = context({
    authType,
    secrets: { ...auth.secrets, ...secrets },
    config: { ...auth.config, ...config },
    fetch: server.fetch,
  });
  return { world, server, instance: plugin.create(world) };
}

describe("tokens", () => {
  test("one for each audience, had when it is first needed", async () => {
    const { instance, server } = made("client-secret");
    await instance.start();
    expect((await instance.injectCredentials(arm)).set).toEqual([
      ["authorization", "Bearer token-1"],
    ]);
    expect((await instance.injectCredentials(blob)).set).toEqual([
      ["authorization", "Bearer token-2"],
    ]);
    expect((await instance.injectCredentials(vault)).set).toEqual([
      ["authorization", "Bearer token-3"],
    ]);
    expect((await instance.injectCredentials(blob)).set).toEqual([
      ["authorization", "Bearer token-2"],
    ]);
    expect(server.calls.map(({ body }) => new URLSearchParams(body).get("scope"))).toEqual([
      "https://management.azure.com/.default",
      "https://storage.azure.com/.default",
      "https://vault.azure.net/.default",
    ]);
    expect(server.calls[0]?.url).toBe(
      `https://login.microsoftonline.com/${IDS.tenantId}/oauth2/v2.0/token`,
    );
    expect(Object.fromEntries(new URLSearchParams(server.calls[0]?.body))).toEqual({
      grant_type: "client_credentials",
      client_id: IDS.clientId,
      client_secret: "abc8Q~client-secret-value",
      scope: "https://management.azure.com/.default",
    });
    await instance.stop();
  });

  test("are renewed about every 45 minutes, each once for all who ask", async () => {
    const { instance, server, world } = made("client-secret");
    await Promise.all([instance.start(), instance.injectCredentials(arm), instance.refreshToken()]);
    expect(server.calls).toHaveLength(1);
    await world.clock.advanceAndSettle(42 * MINUTE);
    expect(server.calls).toHaveLength(1);
    await world.clock.advanceAndSettle(4 * MINUTE);
    expect(server.calls).toHaveLength(2);
    await instance.stop();
    expect(world.clock.pending).toEqual([]);
  });

  test("are used to their end while Entra is away", async () => {
    const { instance, server, world } = made("client-secret");
    await instance.start();
    server.respond = () => new Response("", { status: 500 });
    await world.clock.advanceAndSettle(58 * MINUTE);
    expect((await instance.injectCredentials(arm)).set).toEqual([
      ["authorization", "Bearer token-1"],
    ]);
    await world.clock.advanceAndSettle(3 * MINUTE);
    await expect(instance.injectCredentials(arm)).rejects.toThrow(InjectionError);
    await instance.stop();
  });

  test("by the pod's own token", async () => {
    const { instance, server } = made("federated-token");
    await instance.start();
    expect(Object.fromEntries(new URLSearchParams(server.calls[0]?.body))).toMatchObject({
      client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
      client_assertion: "federated.pod.token",
    });
    await instance.stop();
  });

  test("a file that is not there is told by its path", async () => {
    const { instance, world } = made("federated-token", { tokenFile: "/nowhere/token" });
    await instance.start();
    expect(world.lines.join()).toContain("/nowhere/token");
    await instance.stop();
  });

  test.each([
    "https://login.microsoftonline.com/",
    "https://evil.example/",
    "https://reports.file.core.windows.net/a",
  ])("%s gets none, even in audit mode", async (url) => {
    const { instance } = made("client-secret");
    await expect(instance.injectCredentials(request(`GET ${url}`))).rejects.toThrow(InjectionError);
  });
});

test.each([
  [{}, { tenantId: "contoso" }],
  [{}, { clientId: "x" }],
  [{}, { clientSecret: "with spaces" }],
  [{ places: "reports" }, {}],
  [{ places: "reports=not-an-id/data" }, {}],
] as const)("settings that cannot work are an error (%#)", (config, secrets) => {
  expect(() => made("client-secret", config, secrets)).toThrow(ConfigError);
});

describe("the probe of Key Vault's SDKs", () => {
  const write = (headers: Readonly<Record<string, string>>, body?: string) =>
    request("PUT https://vault-1.vault.azure.net/secrets/db", {
      headers,
      ...(body !== undefined && { body }),
    });

  test.each([
    ["a write without token and body", write({ "content-length": "0" }), false],
    ["a write without a length", write({}), false],
    ["a write with a body", write({ "content-length": "2" }, "{}"), true],
    ["a write in chunks", write({ "transfer-encoding": "chunked" }), true],
    ["a write with a token", write({ "content-length": "0", authorization: "Bearer x" }), true],
    ["a read", vault, true],
    ["a write elsewhere", request("PUT https://reports.blob.core.windows.net/con/a"), true],
  ])("%s", async (_name, sent, hasToken) => {
    const { instance } = made("client-secret");
    const { set } = await instance.injectCredentials(sent);
    expect(set.length > 0).toBe(hasToken);
  });
});
