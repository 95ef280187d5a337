/** Tests parts of a binding's policy against attempts to circumvent them. */
import { describe, expect, test } from "vitest";
import type { ProviderPlugin, ServiceResource } from "../providers/contract.ts";
import { compileActionLists } from "./action-lists.ts";
import { isAmbiguousPath } from "../providers/url-path.ts";
import { compileHttpRules } from "./http-rules.ts";
import { compilePathGlobs } from "./path-glob.ts";
import { canonicalHost, type RawRequest, readRequest } from "./request.ts";
import { compileScope } from "./scope.ts";
import { compileWildcards } from "./wildcard.ts";

describe("wildcards", () => {
  test.each([
    ["pulls:*", "pulls:read", true],
    ["pulls:*", "pulls", false],
    ["pulls:*", "xpulls:read", false],
    ["*:read", "pulls:read", true],
    ["s3:Get*", "S3:getObject", true],
    ["s3:Get*", "s3:PutObject", false],
    ["a.c", "abc", false],
    ["(a|b)", "a", false],
    ["arn:aws:s3:::b/*", "arn:aws:s3:::b/x/y\n", true],
    ["arn:aws:s3:::b/*", "arn:aws:s3:::b", false],
    ["*", "", true],
  ])("%s on %j: %s", (pattern, text, expected) => {
    expect(compileWildcards([pattern], true)(text) !== undefined).toBe(expected);
  });
});

describe("path globs", () => {
  test.each([
    ["/repos/*", "/repos/a", true],
    ["/repos/*", "/repos/a/b", false],
    ["/repos/*/issues", "/repos/a/issues", true],
    ["/repos/*/issues", "/repos/a/b/issues", false],
    ["/repos/**", "/repos/a/b/c", true],
    ["/repos/**", "/repositories/1", false],
    ["/repos/*/issues/**", "/repos/a/issues/1/comments", true],
    ["/a.b", "/axb", false],
    ["/a[b]", "/ab", false],
    ["/a[b]", "/a[b]", true],
    ["/{a,b}", "/a", false],
    ["/!(a)", "/b", false],
    ["/a?", "/ab", false],
    ["/.git/*", "/.git/config", true],
    ["/*", "/.hidden", true],
    ["/Repos", "/repos", false],
    ["octo/*", "octo/.github", true],
    ["octo/*", "octo/a/b", false],
    ["octo/*", "octopus/a", false],
  ])("%s on %s: %s", (glob, path, expected) => {
    expect(compilePathGlobs([glob], false)(path) !== undefined).toBe(expected);
  });
});

test("path globs regard case, or do not", () => {
  expect(compilePathGlobs(["octo/*", "me/*"], true)("Me/Notes")).toBe("me/*");
  expect(compilePathGlobs(["octo/*", "me/*"], false)("Me/Notes")).toBeUndefined();
});

describe("httpRules", () => {
  const rules = compileHttpRules([
    { methods: ["*"], paths: ["/admin/**"], action: "deny" },
    { methods: ["GET", "HEAD"], paths: ["/**"], action: "allow" },
    { methods: ["POST"], paths: ["/repos/*/*/issues"], action: "allow" },
  ]);

  test.each([
    ["GET", "/repos/a/b", true],
    ["GET", "/admin/x", false],
    ["POST", "/repos/a/b/issues", true],
    ["POST", "/repos/a/b/issues/1", false],
    ["DELETE", "/repos/a/b", false],
    ["get", "/repos/a/b", false],
    ["GET", "/", true],
    ["GET", "/repos/", true],
    // Spellings of a path to /admin that are not literal.
    ...[
      "/x/../admin/x",
      "/x/%2e%2e/admin/x",
      "/x/.%2E/admin",
      "/x%2f..%2fadmin",
      "/%252e%252e/admin",
      "//admin/x",
      "/x//admin",
      "/./admin/x",
      "/admin;x/y",
      "/x;/admin",
      "/..;/admin",
      "/x%5cadmin",
      "/%00/admin",
      "/%0a",
      "/%",
      "/%zz",
      "/%2",
      "/x/..",
      "/x/.",
      "/admin%3bx/y",
      "/admin%3Bx/y",
      "/admin%7f/y",
      "/admin%7F/y",
      // Escapes of what needs none.
      "/%61dmin/x",
      "/adm%49n/x",
      "/%61%64%6d%69%6e/x",
      "/a%2Db",
      "/a%30",
      "/a%5Fb",
      "/a%7Eb",
    ].map((path): [string, string, boolean] => ["GET", path, false]),
  ])("%s %s: %s", (method, path, expected) => {
    expect(rules(method, path).kind === "allowed").toBe(expected);
  });

  test("without rules all is allowed; the rule that denied is named", () => {
    expect(compileHttpRules([])("DELETE", "/x/../y")).toEqual({ kind: "allowed" });
    expect(rules("GET", "/admin/x")).toEqual({
      kind: "denied",
      rule: "policy.httpRules[0]: deny * /admin/**",
    });
    expect(rules("DELETE", "/x")).toEqual({
      kind: "denied",
      rule: "policy.httpRules: no rule matches",
    });
    expect(rules("GET", "/x/../y")).toEqual({
      kind: "denied",
      rule: "policy.httpRules: the path is ambiguous",
    });
  });

  test("one rule is enough to deny what matches none", () => {
    const one = compileHttpRules([{ methods: ["GET"], paths: ["/a"], action: "allow" }]);
    expect(one("GET", "/a").kind).toBe("allowed");
    expect(one("GET", "/b").kind).toBe("denied");
    expect(one("POST", "/a").kind).toBe("denied");
    expect(one("GET", "/A").kind).toBe("denied");
  });

  test("a rule for every method, and one for several methods and paths", () => {
    const both = compileHttpRules([
      { methods: ["PUT", "POST"], paths: ["/a", "/b"], action: "deny" },
      { methods: ["*"], paths: ["/**"], action: "allow" },
    ]);
    expect(both("DELETE", "/a").kind).toBe("allowed");
    expect(both("POST", "/b")).toEqual({
      kind: "denied",
      rule: "policy.httpRules[0]: deny PUT,POST /a /b",
    });
  });

  test.each([
    "/",
    "/a",
    "/a/",
    "/a/b/",
    "/a%20b",
    "/a%3Cb",
    "/a+b",
    "/caf%C3%A9",
    "/a@b:c",
    "/a,b",
  ])("plain: %s", (path) => {
    expect(isAmbiguousPath(path)).toBe(false);
  });
});

describe("action lists", () => {
  test("deny first; with an allow list what is not on it is denied", () => {
    const lists = compileActionLists({
      allow: ["pulls:*", "contents:read"],
      deny: ["pulls:write"],
    });
    expect(lists.judge("pulls:read")).toEqual({ kind: "allowed" });
    expect(lists.judge("pulls:write")).toEqual({
      kind: "denied",
      rule: "policy.deny: pulls:write",
    });
    expect(lists.judge("issues:read")).toEqual({
      kind: "denied",
      rule: "policy.allow: not on the list",
    });
    expect(compileActionLists({ deny: [] }).judge("anything")).toEqual({ kind: "allowed" });
    expect(compileActionLists({ allow: [], deny: [] }).judge("anything").kind).toBe("denied");
  });
});

describe("narrower actions", () => {
  test.each<[object, boolean]>([
    [{ allow: ["messages:write"] }, true],
    [{ allow: ["messages:*"] }, true],
    [{ allow: ["messages:delete"] }, true],
    [{ allow: ["*:write"] }, true],
    [{ allow: ["messages:read"] }, false],
    [{ allow: ["messages:write"], deny: ["messages:delete"] }, false],
    [{ allow: ["*"], deny: ["*:delete"] }, false],
    [{ deny: ["messages:write"] }, false],
    [{ allow: ["messages:delete"], deny: ["messages:write"] }, false],
    [{ allow: ["messages:delete"], deny: ["*:write"] }, false],
  ])("%j on messages:delete, which messages:write covers: %s", (lists, expected) => {
    const compiled = compileActionLists({ deny: [], ...lists });
    expect(compiled.judge("messages:delete", ["messages:write"]).kind === "allowed").toBe(expected);
  });

  test("what is narrower does not cover what is wider", () => {
    const compiled = compileActionLists({ allow: ["messages:delete"], deny: [] });
    expect(compiled.judge("messages:write").kind).toBe("denied");
  });
});

describe("scope", () => {
  const plugin = {
    providerName: "some",
    scopeKeys: { repositories: "r", projects: "p" },
    scopeIgnoresCase: true,
  } as unknown as ProviderPlugin;
  const repository = (value: string): ServiceResource => ({
    kind: "scoped",
    key: "repositories",
    value,
  });
  const scope = compileScope({ repositories: ["octo/*", "me/notes"] }, plugin);

  test.each<[string, readonly ServiceResource[], boolean]>([
    ["one inside", [repository("Octo/Hello")], true],
    ["one outside", [repository("other/hello")], false],
    ["one of two outside", [repository("octo/a"), repository("other/b")], false],
    ["nothing at all", [], true],
    ["what no scope is about", [{ kind: "none" }], true],
    ["what the scope has no words for", [{ kind: "unscopable", reason: "x" }], false],
    ["both", [repository("octo/a"), { kind: "unscopable", reason: "x" }], false],
    ["something of another kind only", [{ kind: "scoped", key: "projects", value: "p" }], false],
    ["a longer name", [repository("me/notes2")], false],
    ["a slash more", [repository("octo/a/b")], false],
  ])("%s", (_name, resources, expected) => {
    expect(scope(resources).kind === "inside").toBe(expected);
  });

  test("no scope, no bounds; keys of other services are an error", () => {
    expect(compileScope({}, plugin)([{ kind: "unscopable", reason: "x" }]).kind).toBe("inside");
    expect(compileScope({ arns: undefined }, plugin)([repository("a/b")]).kind).toBe("inside");
    expect(() => compileScope({ arns: ["x"] }, plugin)).toThrow(
      "spec.scope.arns: some has only repositories, projects",
    );
    expect(() => compileScope({ repositories: ["o/*"], arns: [] }, plugin)).toThrow("arns");
  });

  test("what one key cannot hold is outside where that key is set", () => {
    const resources: readonly ServiceResource[] = [
      repository("octo/a"),
      { kind: "unscopable", reason: "x", keys: ["projects"] },
    ];
    const both = compileScope({ repositories: ["octo/*"], projects: ["p"] }, plugin);
    expect(scope(resources).kind).toBe("inside");
    expect(both(resources).kind).toBe("outside");
    // Nor is it made good by something of that key that is inside.
    const project: ServiceResource = { kind: "scoped", key: "projects", value: "p" };
    expect(both([repository("octo/a"), project]).kind).toBe("inside");
    expect(both([...resources, project])).toEqual({
      kind: "outside",
      rule: "spec.scope: x",
      resource: "",
    });
  });

  test("a refusal names the key, and the resource that is not in it", () => {
    const both = compileScope({ repositories: ["octo/*"], projects: ["p"] }, plugin);
    expect(both([repository("octo/a")])).toEqual({
      kind: "outside",
      rule: "spec.scope.projects: the request acts on something wider than the scope",
      resource: "",
    });
    expect(both([repository("octo/a"), repository("me/b")])).toEqual({
      kind: "outside",
      rule: "spec.scope.repositories: not in it",
      resource: "me/b",
    });
  });

  test("a list with nothing in it leaves nothing in the scope", () => {
    const empty = compileScope({ repositories: [] }, plugin);
    expect(empty([repository("a/b")]).kind).toBe("outside");
  });
});

describe("reading a request", () => {
  const raw = (more: Partial<RawRequest> = {}): RawRequest => ({
    method: "GET",
    target: "/user?x=1",
    authority: "api.github.com",
    headers: [
      ["accept", "a"],
      ["accept", "b"],
    ],
    body: undefined,
    serverName: "api.github.com",
    ...more,
  });

  test("parts as they are on the wire", () => {
    expect(readRequest(raw())).toEqual({
      kind: "request",
      request: {
        method: "GET",
        host: "api.github.com",
        path: "/user",
        query: "x=1",
        headers: new Map([["accept", "a, b"]]),
        body: undefined,
      },
    });
    expect(readRequest(raw({ target: "/a//b/../%2F?" }))).toMatchObject({
      request: { path: "/a//b/../%2F", query: "" },
    });
  });

  test.each<[string, Partial<RawRequest>]>([
    ["a port", { authority: "api.github.com:443" }],
    ["a server name in another case", { serverName: "API.github.com" }],
    ["the port of HTTPS", { authority: "api.github.com:443" }],
    ["without TLS", { serverName: undefined }],
  ])("one host: %s", (_name, more) => {
    expect(readRequest(raw(more))).toMatchObject({
      kind: "request",
      request: { host: "api.github.com" },
    });
  });

  test.each<[string, Partial<RawRequest>, number]>([
    ["another case", { authority: "API.GitHub.com" }, 400],
    ["a trailing dot", { authority: "api.github.com." }, 400],
    ["another port", { authority: "api.github.com:8443" }, 400],
    ["the port of plain HTTP over TLS", { authority: "api.github.com:80" }, 400],
    ["a port without TLS", { serverName: undefined, authority: "api.github.com:80" }, 400],
    ["HTTPS's without TLS", { serverName: undefined, authority: "api.github.com:443" }, 400],
    ["two ports", { authority: "api.github.com:443:443" }, 400],
    ["user information", { authority: "x@api.github.com" }, 400],
    ["an IPv6 literal", { authority: "[::1]" }, 400],
    ["an empty host", { authority: "" }, 400],
    ["two trailing dots", { authority: "api.github.com.." }, 400],
    ["a space", { authority: "api.github.com evil.com" }, 400],
    ["two hosts", { authority: "api.github.com,evil.com" }, 400],
    ["a percent", { authority: "api%2egithub.com" }, 400],
    ["a NUL", { authority: "api.github.com\0.evil.com" }, 400],
    ["not ASCII", { authority: "api.github.com\u3002" }, 400],
    ["a host header beside the authority", { headers: [["host", "evil.com"]] }, 400],
    ["the connection of another host", { serverName: "uploads.github.com" }, 421],
    ["a connection that named none", { serverName: "" }, 421],
    ["no path", { target: "" }, 400],
    ["an asterisk", { target: "*" }, 400],
    ["absolute-form", { target: "https://evil.com/user" }, 400],
    ["a backslash", { target: "/a\\b" }, 400],
    ["a fragment", { target: "/a#b" }, 400],
    ["a space in the path", { target: "/a b" }, 400],
    ["a tab", { target: "/a\tb" }, 400],
    ["a NUL in the path", { target: "/a\0" }, 400],
    ["raw UTF-8", { target: "/é" }, 400],
    ["a method of two words", { method: "GET /" }, 400],
    ["no method", { method: "" }, 400],
    [
      "two content types",
      {
        headers: [
          ["content-type", "a"],
          ["content-type", "b"],
        ],
      },
      400,
    ],
    [
      "two targets",
      {
        headers: [
          ["x-amz-target", "a"],
          ["x-amz-target", "b"],
        ],
      },
      400,
    ],
  ])("refused: %s", (_name, more, status) => {
    expect(readRequest(raw(more))).toMatchObject({ kind: "malformed", status });
  });

  const label = "a".repeat(63);
  test.each([
    "localhost",
    "a.b",
    "x_1.api.github.com",
    "a--b.example",
    `${label}.example`,
    `${label}.${label}.${label}.${"a".repeat(61)}`,
  ])("a host: %s", (host) => {
    expect(canonicalHost(host, true)).toBe(host);
    expect(canonicalHost(`${host}:443`, true)).toBe(host);
    expect(canonicalHost(host, false)).toBe(host);
  });

  test.each([
    "",
    ".example",
    "a..b",
    "-a.example",
    "a-.example",
    "a.-b",
    "a.b-",
    `${label}a.example`,
    `a.${label}a`,
    `${label}.${label}.${label}.${"a".repeat(62)}`,
    "a.example:",
    "a.example:443 ",
    "a.example:000443",
    "a.example:http",
    "a.example:443@b.example",
    "b@a.example:443",
    "a.example\n",
    "a.example/x",
    "a.example:80",
    "[a.example]",
  ])("no host: %j", (authority) => {
    expect(canonicalHost(authority, true)).toBeUndefined();
  });

  test("no host: any port over plain HTTP, where Envoy removes its own", () => {
    for (const port of [":80", ":443", ":8081"])
      expect(canonicalHost(`a.example${port}`, false)).toBeUndefined();
  });

  test.each([
    "authorization",
    "content-type",
    "content-length",
    "content-encoding",
    "x-amz-target",
    "x-amz-copy-source",
    "x-amz-content-sha256",
    "x-http-method-override",
  ])("two headers %s are refused, even if they say the same", (name) => {
    const headers = [
      [name, "x"],
      [name, "x"],
    ] as const;
    expect(readRequest(raw({ headers }))).toMatchObject({ kind: "malformed", status: 400 });
    expect(readRequest(raw({ headers: headers.slice(1) })).kind).toBe("request");
  });

  test("of several question marks the first one ends the path", () => {
    expect(readRequest(raw({ target: "/a?b?c" }))).toMatchObject({
      request: { path: "/a", query: "b?c" },
    });
    expect(readRequest(raw({ target: "/a" }))).toMatchObject({
      request: { path: "/a", query: "" },
    });
    expect(readRequest(raw({ target: "/?" }))).toMatchObject({
      request: { path: "/", query: "" },
    });
    expect(readRequest(raw({ target: "?a" }))).toMatchObject({ kind: "malformed" });
  });
});
