import { FakeClock } from "../../platform/testing.ts";
import { createVerify } from "node:crypto";
import { expect, test } from "vitest";
import { ConfigError, InjectionError, NO_INJECTION } from "../contract.ts";
import { context, FakeServer, request } from "../testing.ts";
import { APP_PUBLIC_KEY, APP_SECRETS, installationToken } from "./contract-sample.ts";
import { plugin } from "./plugin.ts";

const PAT = "github_pat_0123456789";
const MINUTE = 60_000;

const withPat = (config: Readonly<Record<string, string>> = {}) =>
  plugin.create(context({ secrets: { token: PAT }, config }));

function withApp(config: Readonly<Record<string, string>> = {}) {
  const clock = new FakeClock();
  let count = 0;
  const server = new FakeServer(() => installationToken(clock.now(), `ghs_${++count}`));
  const world = context({
    authType: "app",
    secrets: APP_SECRETS,
    clock,
    config,
    fetch: server.fetch,
  });
  return { clock, server, world, instance: plugin.create(world) };
}

const BASIC = `Basic ${Buffer.from(`x-access-token:${PAT}`).toString("base64")}`;

test.each([
  ["GET https://api.github.com/user", `Bearer ${PAT}`],
  ["POST https://api.github.com/graphql", `Bearer ${PAT}`],
  ["POST https://uploads.github.com/repos/o/r/releases/1/assets?name=a", `Bearer ${PAT}`],
  ["GET https://github.com/o/r.git/info/refs?service=git-upload-pack", BASIC],
  ["POST https://github.com/o/r.git/git-receive-pack", BASIC],
  ["POST https://github.com/o/r.git/info/lfs/objects/batch", BASIC],
  ["GET https://raw.githubusercontent.com/o/r/main/a", `token ${PAT}`],
  ["GET https://codeload.github.com/o/r/tar.gz/main", `token ${PAT}`],
])("%s gets %s", async (line, authorization) => {
  expect(await withPat().injectCredentials(request(line))).toEqual({
    ...NO_INJECTION,
    set: [["authorization", authorization]],
  });
});

test.each([
  // Targets of GitHub's download redirects: their addresses contain a signature.
  "GET https://objects.githubusercontent.com/github-production-release-asset/1",
  "GET https://release-assets.githubusercontent.com/github-production-release-asset/1",
  "GET https://productionresultssa0.blob.core.windows.net/actions-results/1",
  "GET https://github-cloud.s3.amazonaws.com/alambic/media/1",
  "GET https://pipelines.actions.githubusercontent.com/1",
  "GET https://gist.github.com/o/1",
  "GET https://ghcr.io/v2/o/r/manifests/1",
  "GET https://api.github.com.evil.example/user",
  "GET https://github.com.evil.example/o/r.git/info/refs?service=git-upload-pack",
  "GET https://xapi.github.com/user",
  // Pages that do not accept the token.
  "GET https://github.com/o/r/releases/download/v1/a.zip",
  "GET https://github.com/o/r/archive/main.zip",
  "GET https://github.com/login",
])("%s gets no token", async (line) => {
  expect(await withPat().injectCredentials(request(line))).toEqual(NO_INJECTION);
});

test("another type of credential is an error that names both", () => {
  expect(() => plugin.create(context({ authType: "oauth", secrets: { token: PAT } }))).toThrow(
    "auth.type of github is token or app",
  );
});

test("those hosts are not intercepted either", () => {
  expect(plugin.defaultHosts).toEqual([
    "api.github.com",
    "github.com",
    "uploads.github.com",
    "codeload.github.com",
    "raw.githubusercontent.com",
  ]);
  expect(plugin.hostPatterns).toEqual([]);
});

test.each([
  "GET https://uploads.github.com/repos/o/r",
  "POST https://uploads.github.com/repos/o/r/issues",
  "POST https://uploads.github.com/repos/o/r/releases/1/assets/../../../../../user",
])("%s is not understood", (line) => {
  expect(withPat().resolveAction(request(line)).kind).toBe("unresolved");
});

test("an enterprise server has everything on one host, and its token goes nowhere else", async () => {
  const instance = withPat({ host: "GitHub.example.com" });
  const actions = (line: string, init: Parameters<typeof request>[1] = {}) => {
    const resolution = instance.resolveAction(request(line, init));
    return resolution.kind === "resolved" ? resolution.actions.map(({ action }) => action) : [];
  };
  expect(actions("GET https://github.example.com/api/v3/repos/o/r/pulls")).toEqual(["pulls:read"]);
  expect(
    actions("POST https://github.example.com/api/uploads/repos/o/r/releases/1/assets?name=x"),
  ).toContain("contents:write");
  expect(actions("POST https://github.example.com/o/r.git/git-upload-pack")).toEqual([
    "contents:read",
  ]);
  expect(
    actions("POST https://github.example.com/api/graphql", {
      headers: { "content-type": "application/json" },
      body: '{"query":"{viewer{login}}"}',
    }),
  ).toEqual(["users:read"]);
  expect(actions("GET https://github.example.com/repos/o/r/pulls")).toEqual([]);
  expect(actions("GET https://api.github.com/repos/o/r/pulls")).toEqual([]);
  expect(await instance.injectCredentials(request("GET https://api.github.com/user"))).toEqual(
    NO_INJECTION,
  );
  expect(plugin.hostsFor?.({ host: "github.example.com" })).toEqual(["github.example.com"]);
  expect(plugin.hostsFor?.({ host: "octocorp.ghe.com" })).toEqual([
    "api.octocorp.ghe.com",
    "uploads.octocorp.ghe.com",
    "octocorp.ghe.com",
  ]);
  expect(plugin.hostsFor?.({})).toBeUndefined();
});

test.each([
  "https://github.example.com",
  "github.example.com/api",
  "github.example.com:8443",
  "localhost",
  "10.0.0.1",
  "github.com",
  "api.github.com",
  "*.example.com",
  "",
  "a..b",
])("config.host %j is an error", (host) => {
  expect(() => withPat({ host })).toThrow(ConfigError);
  expect(() => withPat({ host })).toThrow("config.host");
});

test("the app's JWT is as GitHub wants it, and is sent to GitHub alone", async () => {
  const { server, instance, clock } = withApp();
  await instance.start();
  const [call] = server.calls;
  expect(call).toMatchObject({
    url: "https://api.github.com/app/installations/98765432/access_tokens",
    method: "POST",
  });
  const [scheme, jwt = ""] = (call?.headers.get("authorization") ?? "").split(" ");
  expect(scheme).toBe("Bearer");
  const [head = "", claims = "", signature = ""] = jwt.split(".");
  const read = (part: string): unknown => JSON.parse(Buffer.from(part, "base64url").toString());
  const seconds = Math.floor(clock.now() / 1_000);
  expect(read(head)).toEqual({ alg: "RS256", typ: "JWT" });
  expect(read(claims)).toEqual({ iss: APP_SECRETS.appId, iat: seconds - 60, exp: seconds + 540 });
  expect(
    createVerify("RSA-SHA256")
      .update(`${head}.${claims}`)
      .verify(APP_PUBLIC_KEY, signature, "base64url"),
  ).toBe(true);
  await instance.stop();
});

test("an installation's token is used for everything, and renewed at about 50 minutes", async () => {
  const { clock, instance, server } = withApp();
  await instance.start();
  const authorization = async () =>
    (await instance.injectCredentials(request("GET https://api.github.com/user"))).set;
  expect(await authorization()).toEqual([["authorization", "Bearer ghs_1"]]);
  await clock.advanceAndSettle(47 * MINUTE);
  expect(server.calls).toHaveLength(1);
  await clock.advanceAndSettle(3 * MINUTE);
  expect(await authorization()).toEqual([["authorization", "Bearer ghs_2"]]);
  await instance.refreshToken();
  expect(await authorization()).toEqual([["authorization", "Bearer ghs_3"]]);
  await instance.stop();
});

test("an enterprise's token server is the enterprise", async () => {
  for (const [host, url] of [
    [
      "github.example.com",
      "https://github.example.com/api/v3/app/installations/98765432/access_tokens",
    ],
    ["octocorp.ghe.com", "https://api.octocorp.ghe.com/app/installations/98765432/access_tokens"],
  ] as const) {
    const { server, instance } = withApp({ host });
    await instance.start();
    expect(server.calls[0]?.url).toBe(url);
    await instance.stop();
  }
});

test("GitHub's clock counts, not ours", async () => {
  const { server, instance, clock } = withApp();
  server.respond = () => installationToken(clock.now() - 5 * 60 * MINUTE, "ghs_skewed");
  await instance.start();
  expect(
    (await instance.injectCredentials(request("GET https://api.github.com/user"))).set,
  ).toEqual([["authorization", "Bearer ghs_skewed"]]);
  await instance.stop();
});

test.each([
  [
    "401",
    () => Response.json({ message: "A JSON web token could not be decoded" }, { status: 401 }),
    502,
    "answered 401",
  ],
  [
    "404",
    () => new Response("", { status: 404 }),
    502,
    "check appId, installationId and privateKey",
  ],
  [
    "403 of a rate limit",
    () => new Response("", { status: 403, headers: { "retry-after": "120" } }),
    503,
    '"retryInMs":120000',
  ],
  ["429", () => new Response("", { status: 429 }), 503, "answered 429"],
  ["500", () => new Response("", { status: 500 }), 503, "answered 500"],
  [
    "a redirect",
    () => new Response("", { status: 302, headers: { location: "https://evil.example" } }),
    503,
    "answered 302",
  ],
  ["no JSON", () => new Response("<html>", { status: 201 }), 503, "holds no installation token"],
  ["no token", () => Response.json({}, { status: 201 }), 503, "holds no installation token"],
  ["null", () => Response.json(null, { status: 201 }), 503, "holds no installation token"],
  [
    "a token with a line break",
    () => Response.json({ token: "a\r\nb", expires_at: "2100-01-01T00:00:00Z" }, { status: 201 }),
    503,
    "holds no installation token",
  ],
  [
    "no date",
    () => Response.json({ token: "ghs_x", expires_at: "soon" }, { status: 201 }),
    503,
    "holds no installation token",
  ],
])(
  "where GitHub answers %s there is no token, and the log says why",
  async (_name, respond, status, why) => {
    const { server, instance, world } = withApp();
    server.respond = respond;
    await instance.start();
    const asked = Promise.resolve(
      instance.injectCredentials(request("GET https://api.github.com/user")),
    );
    await expect(asked).rejects.toBeInstanceOf(InjectionError);
    await expect(asked).rejects.toMatchObject({ status });
    expect(world.lines.join("")).toContain(why);
    await instance.stop();
  },
);

test.each([
  ["appId", "12 34"],
  ["installationId", "twelve"],
  ["installationId", "1/../../x"],
  ["privateKey", "-----BEGIN RSA PRIVATE KEY-----\nnope\n-----END RSA PRIVATE KEY-----"],
])("the Secret's %s %j is an error that says how to mend it", (key, value) => {
  const create = () =>
    plugin.create(context({ authType: "app", secrets: { ...APP_SECRETS, [key]: value } }));
  expect(create).toThrow(ConfigError);
  expect(create).toThrow(key);
  expect(create).not.toThrow(value);
});

test("a token from a file keeps no line break", async () => {
  const instance = plugin.create(context({ secrets: { token: `${PAT}\n` } }));
  expect(
    (await instance.injectCredentials(request("GET https://api.github.com/user"))).set,
  ).toEqual([["authorization", `Bearer ${PAT}`]]);
});

test("a host of another binding is refused", () => {
  const line = "GET https://evil.example/o/r.git/info/refs?service=git-upload-pack";
  expect(withPat().resolveAction(request(line))).toMatchObject({
    kind: "unresolved",
    reason: "This host does not belong to the binding",
  });
});
