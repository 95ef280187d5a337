import { describe, expect, test } from "vitest";
import generated from "../../gen/github-routes.json" with { type: "json" };
import { request } from "../testing.ts";
import { TABLES as ACTION_TABLES } from "./rest-actions.ts";
import { JUDGED_BY_BODY } from "./rest-body.ts";
import { DESCRIBES_LINKED, REACHES_FURTHER, WITHIN } from "./rest-reach.ts";
import { TABLES as RESOURCE_TABLES } from "./rest-resources.ts";
import { isTwin, resolveRest } from "./rest.ts";

interface Sent {
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const resolve = (method: string, path: string, query = "", sent: Sent = {}) => {
  const made = { ...request("GET https://api.github.com/", sent), method, path, query };
  return resolveRest(made, path);
};

/** `action resource+resource ...`, or `unresolved`. */
function told(method: string, path: string, query = "", sent: Sent = {}): string {
  const resolution = resolve(method, path, query, sent);
  if (resolution.kind === "unresolved") return "unresolved";
  return resolution.actions
    .map(
      ({ action, resources }) =>
        `${action} ` +
        resources.map((each) => (each.kind === "scoped" ? each.value : each.kind)).join("+"),
    )
    .join(", ");
}

interface Operation {
  readonly method: string;
  readonly typed: string;
  readonly category: string;
  readonly subcategory: string;
  readonly operation: string;
}

const operations: readonly Operation[] = generated.routes.map((line) => {
  const [method = "", typed = "", category = "", subcategory = "", operation = ""] =
    line.split(" ");
  return { method, typed, category, subcategory, operation };
});

/**
 * Returns a path that a client would send for it: `Octo-Org/hello.world`, and realistic values of
 * the parameters.
 */
function concrete(typed: string): string {
  return typed.replaceAll(
    /\{([^:}]+)(?::([^}]+))?\}/g,
    (_whole, name: string, kind: string | undefined) => {
      if (name === "owner" || name === "template_owner") return "Octo-Org";
      if (name === "repo" || name === "template_repo") return "hello.world";
      if (kind === "int") return "4711";
      if (kind === "multi") return "feature/x%2Fy";
      return kind?.split("|")[0] ?? `some-${name.replaceAll("_", "-")}`;
    },
  );
}

test("GitHub's description is here whole", () => {
  expect(operations.length).toBeGreaterThanOrEqual(1_223);
});

test("each operation is its category, reads or writes by its method, and is about its repository", () => {
  const wrong: string[] = [];
  for (const each of operations) {
    const { method, typed, category, subcategory, operation } = each;
    const path = concrete(typed);
    const found = told(method, path);
    if (ACTION_TABLES.CREDENTIALS.has(operation)) {
      if (found !== "unresolved") wrong.push(`${operation}: ${found}`);
      continue;
    }
    // The twin is evaluated as the route with the same paths and more.
    const named = isTwin(typed)
      ? "commits"
      : ACTION_TABLES.METADATA.has(operation)
        ? "metadata"
        : (ACTION_TABLES.RENAMED[`${category}.${subcategory}`] ??
          ACTION_TABLES.RENAMED[category] ??
          category);
    const verb = method === "GET" || ACTION_TABLES.READING_POSTS.has(operation) ? "read" : "write";
    const resource = /^\/(repos|networks|agents\/repos)\/\{/.test(typed)
      ? "Octo-Org/hello.world"
      : "";
    if (!found.startsWith(`${named}:${verb} ${resource}`))
      wrong.push(`${method} ${path} (${operation}): ${found}`);
  }
  expect(wrong).toEqual([]);
});

test("only what is about no repository escapes a scope", () => {
  const outside = operations.filter(({ method, typed }) =>
    told(method, concrete(typed)).endsWith(" none"),
  );
  expect(
    outside
      .map(({ method, typed }) => `${method} ${typed.split("/").slice(0, 2).join("/")}`)
      .filter((line, at, all) => all.indexOf(line) === at)
      .sort(),
  ).toEqual([
    "GET /",
    "GET /advisories",
    "GET /apps",
    "GET /codes_of_conduct",
    "GET /emojis",
    "GET /gitignore",
    "GET /licenses",
    "GET /meta",
    "GET /octocat",
    "GET /rate_limit",
    "GET /user",
    "GET /users",
    "GET /versions",
    "GET /zen",
    "POST /markdown",
  ]);
});

test("HEAD is judged as GET; methods in lower case, or of no operation, are unresolved", () => {
  expect(told("HEAD", "/repos/o/r/issues")).toBe("issues:read o/r");
  for (const method of ["get", "Get", "OPTIONS", "TRACE", "CONNECT", "POST ", "", "PATCH"])
    expect(told(method, "/repos/o/r/issues")).toBe("unresolved");
});

test("each line of a table is about an operation, or a category, that exists", () => {
  const known = new Set(
    operations.flatMap(({ operation, category, subcategory }) => [
      operation,
      category,
      `${category}.${subcategory}`,
    ]),
  );
  const lines = [
    ...Object.keys(ACTION_TABLES.RENAMED),
    ...Object.keys(ACTION_TABLES.EFFECTS),
    ...ACTION_TABLES.METADATA,
    ...ACTION_TABLES.READING_POSTS,
    ...ACTION_TABLES.CREDENTIALS,
    ...RESOURCE_TABLES.ABOUT_NO_REPOSITORY,
    ...RESOURCE_TABLES.OPERATIONS_ABOUT_NO_REPOSITORY,
    ...Object.keys(REACHES_FURTHER),
    ...WITHIN,
    ...DESCRIBES_LINKED,
    ...JUDGED_BY_BODY,
    ...RESOURCE_TABLES.SEARCHES,
  ];
  expect(lines.filter((line) => !known.has(line))).toEqual([]);
});

test.each([
  ["GET /repos/o/r/pulls/1", "pulls:read o/r"],
  ["GET /repos/o/r/pulls/1/files", "pulls:read o/r"],
  ["POST /repos/o/r/pulls", "pulls:write o/r+unscopable"],
  ["PUT /repos/o/r/pulls/1/merge", "pulls:write o/r, contents:write o/r"],
  [
    "PUT /repos/o/r/pulls/1/update-branch",
    "pulls:write o/r+unscopable, contents:write o/r+unscopable",
  ],
  ["POST /repos/o/r/merges", "branches:write o/r, contents:write o/r"],
  [
    "POST /repos/o/r/merge-upstream",
    "branches:write o/r+unscopable, contents:write o/r+unscopable",
  ],
  ["POST /repos/o/r/releases", "releases:write o/r, contents:write o/r"],
  ["POST /repos/o/r/dispatches", "repos:write o/r, contents:write o/r, actions:write o/r"],
  ["POST /repos/o/r/actions/workflows/ci.yml/dispatches", "actions:write o/r"],
  ["PUT /repos/o/r/actions/secrets/KEY", "secrets:write o/r"],
  ["POST /repos/o/r/hooks", "webhooks:write o/r"],
  ["GET /repos/o/r", "metadata:read o/r"],
  ["GET /repos/o/r/languages", "metadata:read o/r"],
  ["GET /repos/o/r/rulesets", "repos:read o/r"],
  ["PATCH /repos/o/r", "repos:write o/r+unscopable"],
  ["DELETE /repos/o/r", "repos:write o/r"],
  ["POST /repos/o/r/transfer", "repos:write o/r+unscopable"],
  ["POST /repos/o/r/forks", "repos:write o/r+unscopable"],
  ["POST /repos/o/r/generate", "repos:write o/r+unscopable"],
  ["POST /repos/o/r/git/refs", "contents:write o/r"],
  ["PATCH /repos/o/r/git/refs/heads/main", "contents:write o/r"],
  ["GET /repos/o/r/git/ref/heads%2Fmain", "contents:read o/r"],
  ["GET /repos/o/r/contents/src/a%20b.ts", "contents:read o/r"],
  ["GET /repos/o/r/contents", "unresolved"],
  ["GET /repos/o/r/contents/", "contents:read o/r"],
  ["GET /repos/o/r/contents/docs/", "contents:read o/r"],
  ["PUT /repos/o/r/contents/.github/workflows/ci.yml", "contents:write o/r"],
  ["GET /repos/o/r/tarball/v1", "contents:read o/r"],
  ["GET /repos/o/r/commits/feature/x/check-runs", "checks:read o/r"],
  ["GET /repos/o/r/commits/main/status", "commits:read o/r"],
  ["PUT /repos/o/r/branches/feature/x/protection", "branches:write o/r"],
  ["PUT /repos/o/r/branches/protection/protection", "branches:write o/r"],
  ["GET /repos/o/r/compare/main...dev", "commits:read o/r"],
  ["GET /repos/o/r/compare/main...someone:dev", "commits:read o/r+unscopable"],
  ["GET /repos/o/r/compare/main...someone%3Adev", "commits:read o/r+unscopable"],
  ["POST /repos/o/r/issues/1/sub_issues", "issues:write o/r+unscopable"],
  // The answer belongs, or may belong, to another repository.
  ["GET /repos/o/r/issues/1/sub_issues", "issues:read o/r+unscopable"],
  ["GET /repos/o/r/issues/1/parent", "issues:read o/r+unscopable"],
  ["GET /repos/o/r/issues/1/timeline", "issues:read o/r+unscopable"],
  ["GET /repos/o/r/issues/1/events", "issues:read o/r+unscopable"],
  ["GET /repos/o/r/issues/events", "issues:read o/r+unscopable"],
  ["GET /repos/o/r/issues/events/9", "issues:read o/r+unscopable"],
  ["GET /repos/o/r/issues/1/dependencies/blocked_by", "issues:read o/r+unscopable"],
  ["GET /repos/o/r/issues/1/dependencies/blocking", "issues:read o/r+unscopable"],
  ["DELETE /repos/o/r/issues/1/dependencies/blocked_by/9", "issues:write o/r+unscopable"],
  ["GET /repos/o/r/commits/abc/pulls", "commits:read o/r+unscopable"],
  ["GET /repos/o/r/forks", "repos:read o/r+unscopable"],
  ["GET /repos/o/r/events", "activity:read o/r+unscopable"],
  ["GET /networks/o/r/events", "activity:read o/r+unscopable"],
  ["GET /repos/o/r/code-scanning/codeql/variant-analyses/1", "code-scanning:read o/r+unscopable"],
  ["PUT /repos/o/r/import", "migrations:write o/r+unscopable"],
  ["POST /repos/o/r/codespaces", "codespaces:write o/r+unscopable"],
  ["GET /repos/o/r/dependency-graph/compare/main...u:dev", "dependency-graph:read o/r+unscopable"],
  ["GET /repos/o/r/commits/u:dev", "commits:read o/r+unscopable"],
  ["GET /repos/o/r/tarball/u%3Adev", "contents:read o/r+unscopable"],
  ["GET /repos/o/r/labels/kind:bug", "issues:read o/r"],
  ["POST /repos/o/r/actions/runners/registration-token", "unresolved"],
  ["POST /orgs/o/actions/runners/generate-jitconfig", "unresolved"],
  ["GET /repos/o/r/issues/comments", "issues:read o/r"],
  ["GET /repos/o/r/issues/comments/5", "issues:read o/r"],
  ["GET /repos/o/r/issues/abc", "unresolved"],
  ["GET /repos/o/r/releases/tags/a/b", "releases:read o/r"],
  ["GET /repos/o/r/releases/latest", "releases:read o/r"],
  ["PATCH /repos/o/r/releases/latest", "unresolved"],
  ["GET /users/dependabot%5Bbot%5D", "users:read none"],
  ["GET /users/dependabot[bot]", "users:read none"],
  ["GET /user", "users:read none"],
  ["PATCH /user", "users:write unscopable"],
  ["GET /user/repos", "repos:read unscopable"],
  ["GET /user/keys", "users:read unscopable"],
  ["GET /notifications", "activity:read unscopable"],
  ["GET /gists/1", "gists:read unscopable"],
  ["GET /orgs/o/repos", "repos:read unscopable"],
  ["GET /rate_limit", "rate-limit:read none"],
  ["GET /", "meta:read none"],
  ["POST /markdown", "markdown:read none"],
  ["PUT /user/starred/o/r", "activity:write o/r"],
  ["PUT /orgs/o/teams/t/repos/o/r", "teams:write o/r+unscopable"],
  ["GET /repositories", "repos:read unscopable"],
  ["GET /repositories/123", "metadata:read unscopable"],
  ["GET /repositories/123/issues", "issues:read unscopable"],
  ["PUT /repositories/123/contents/a/b", "contents:write unscopable"],
  ["GET /organizations/123/repos", "repos:read unscopable"],
  ["GET /user/123", "users:read none"],
  ["GET /user/123/repos", "unresolved"],
  ["POST /app/installations/5/access_tokens", "unresolved"],
  ["DELETE /installation/token", "unresolved"],
  ["GET /no/such/thing", "unresolved"],
  ["POST /graphql", "unresolved"],
  ["GET /repos/o/r/actions/artifacts/1/zip", "actions:read o/r"],
])("%s is %s", (line, expected) => {
  const [method = "", path = ""] = line.split(" ");
  expect(told(method, path)).toBe(expected);
});

test.each([
  ["GET", "/repos/o/r/contents/a", "ref=main", "contents:read o/r"],
  ["GET", "/repos/o/r/contents/a", "ref=u:main", "contents:read o/r+unscopable"],
  ["GET", "/repos/o/r/commits", "sha=u%3Amain", "commits:read o/r+unscopable"],
  ["GET", "/repos/o/r/pulls", "head=u:dev", "pulls:read o/r"],
])("%s %s?%s is %s", (method, path, query, expected) => {
  expect(told(method, path, query)).toBe(expected);
});

const JSON_TYPE = { "content-type": "application/json; charset=utf-8" };
const FORM_TYPE = { "content-type": "application/x-www-form-urlencoded" };
const INSIDE = "o/r";
const OUTSIDE = "o/r+unscopable";

describe("what a body names is judged", () => {
  const pull = (body: object | string, more: { query?: string; headers?: object } = {}): string =>
    told("POST", "/repos/o/r/pulls", more.query ?? "", {
      headers: { ...JSON_TYPE, ...more.headers },
      body: typeof body === "string" ? body : JSON.stringify(body),
    });

  test.each([
    [{ title: "t", head: "dev", base: "main" }, INSIDE],
    [{ head: "o:dev", base: "main" }, INSIDE],
    [{ head: "O:dev", base: "main" }, INSIDE],
    [{ head: "other:dev", base: "main" }, OUTSIDE],
    [{ head: ":dev", base: "main" }, OUTSIDE],
    [{ head: "dev", head_repo: "secret", base: "main" }, "o/r+o/secret"],
    [{ head: "o:dev", head_repo: "secret", base: "main" }, "o/r+o/secret"],
    [{ head: "other:dev", head_repo: "secret", base: "main" }, OUTSIDE],
    [{ head: "dev", head_repo: "other/secret", base: "main" }, OUTSIDE],
    [{ head: "dev", head_repo: ["secret"], base: "main" }, OUTSIDE],
    [{ head: "dev", head_repo: null, base: "main" }, INSIDE],
    [{ head: ["other:dev"], base: "main" }, OUTSIDE],
    [{ base: "main" }, OUTSIDE],
    ['{"head":"dev","head":"other:dev"}', OUTSIDE],
    ['{"head":"dev","\\u0068ead":"other:dev"}', OUTSIDE],
    ["head=dev&base=main", OUTSIDE],
    ["[]", OUTSIDE],
    ["", OUTSIDE],
  ])("a pull request of %j is about %s", (body, expected) => {
    expect(pull(body)).toBe(`pulls:write ${expected}`);
  });

  test("as curl declares it, and not hidden from who reads a form", () => {
    const body = { head: "dev", base: "main", title: "a=b" };
    expect(pull(body, { headers: FORM_TYPE })).toBe("pulls:write o/r");
    const hidden = { head: "dev", base: "main", title: "&head=other:dev&x=" };
    expect(pull(hidden)).toBe("pulls:write o/r");
    for (const title of ["&head=other:dev&", ";head=other:dev;", "&he%61d=x:y&", "&head[]=x:y&"])
      expect(pull({ ...hidden, title }, { headers: FORM_TYPE })).toBe("pulls:write o/r+unscopable");
    for (const query of ["head=other:dev", "a=b&head_repo=secret", "he%61d=x:y", "head[]=x:y"])
      expect(pull(body, { query })).toBe("pulls:write o/r+unscopable");
    expect(pull(body, { headers: { "content-encoding": "gzip" } })).toBe(
      "pulls:write o/r+unscopable",
    );
  });

  test.each([
    ["PATCH", "/repos/o/r/issues/1", { state: "closed" }, `issues:write ${INSIDE}`],
    ["PATCH", "/repos/o/r/issues/1", { duplicate_issue_id: 5 }, `issues:write ${OUTSIDE}`],
    ["PATCH", "/repos/o/r/issues/1", { duplicate_issue_id: null }, `issues:write ${INSIDE}`],
    ["POST", "/repos/o/r/rulesets", { name: "x", rules: [] }, `repos:write ${INSIDE}`],
    [
      "PUT",
      "/repos/o/r/rulesets/1",
      { rules: [{ type: "workflows", parameters: { workflows: [{ repository_id: 5 }] } }] },
      `repos:write ${OUTSIDE}`,
    ],
    [
      "POST",
      "/repos/o/r/security-advisories",
      { summary: "x", start_private_fork: true },
      `security-advisories:write ${OUTSIDE}`,
    ],
    [
      "POST",
      "/repos/o/r/security-advisories",
      { summary: "x", start_private_fork: false },
      `security-advisories:write ${INSIDE}`,
    ],
  ])("%s %s %j is %s", (method, path, body, expected) => {
    expect(told(method, path, "", { headers: JSON_TYPE, body: JSON.stringify(body) })).toBe(
      expected,
    );
  });
});

test.each([
  ["q=repo%3Ao%2Fr+is%3Aopen", "search:read o/r"],
  ["q=repo:o/r", "search:read o/r"],
  ["q=repo:o/r+repo:o/s+bug", "search:read o/r+o/s"],
  ['q=repo:o/r+"OR+org:x"', "search:read o/r"],
  ["q=bug", "search:read unscopable"],
  ["", "search:read unscopable"],
  ["q=repo:o/r&q=bug", "search:read unscopable"],
  ["q=repo:o/r+org:other", "search:read unscopable"],
  ["q=repo:o/r+user:other", "search:read unscopable"],
  ["q=repo:o/r+OR+bug", "search:read unscopable"],
  ["q=repo:o/r+or+bug", "search:read unscopable"],
  ["q=(repo:o/r)", "search:read unscopable"],
  ["q=repo:o/r+(a)", "search:read unscopable"],
  ["q=-repo:o/r", "search:read unscopable"],
  ["q=NOT+repo:o/r", "search:read unscopable"],
  ['q="repo:o/r"', "search:read unscopable"],
  ['q=repo:"o/r"', "search:read unscopable"],
  ['q=repo:o/r+"', "search:read unscopable"],
  ["q=repo:o/r+/a+OR+b/", "search:read unscopable"],
  ["q=repo:o/*", "search:read unscopable"],
  ["q=repo:o/r+unheard-of:x", "search:read unscopable"],
  ["q=repo:o/r%0Aorg:x", "search:read unscopable"],
])("search %s is %s", (query, expected) => {
  expect(told("GET", "/search/issues", query)).toBe(expected);
});

test.each([
  "/repos/o/r/../../user",
  "/repos/o/r/./issues",
  "/repos/o/r/..",
  "/repos/../x/y",
  "/repos/o/..",
  "/repos/o/%2e%2e",
  "/repos/o/r/%2e%2e/%2E%2e/user",
  "/repos/o/r/..%2fuser",
  "/repos/o/r/..%2f..%2fother%2frepo%2fissues",
  "/repos/o%2fr/issues",
  "/repos/o%2Fr",
  "/repos/o/r%2Fissues",
  "/repos/o/r%252Fissues",
  "/repos/o/r/issues%2F1",
  "/repos/o/r/issues/1%2Fcomments",
  "/repos/o/r/contents/..%2f..%2f..%2fother",
  "/repos/o/r/contents/a%2f..%2fb",
  "/repos/o/r/contents/a%252f..%252fb",
  "/repos/o/r/contents/%2e%2e/%2e%2e",
  "/repos/o/r/contents/../../../x/y/contents/z",
  "/repos/o/r/contents//a",
  "/repos/o/r/contents/a//b",
  "/repos/o/r/contents/%2Fa",
  "/repos/o/r/contents/a%2F",
  "/repos/o/r/contents/..;/a",
  "/repos/o/r/contents/..%3B/a",
  "/repos/o/r/contents/%00",
  "/repos/o/r/contents/a%0d%0ab",
  "/repos/o/r/contents/a%09",
  "/repos/o/r/contents/%c0%ae%c0%ae/x",
  "/repos/o/r/contents/%c0%af",
  "/repos/o/r/contents/%e0%80%af",
  "/repos/o/r/contents/%ff",
  "/repos/o/r/contents/%ed%a0%80",
  "/repos/o/r/contents/a\\b",
  "/repos/o/r/contents/..\\..\\x",
  "/repos/o/r/contents/a%5cb",
  "/repos/o/r/contents/%",
  "/repos/o/r/contents/%2",
  "/repos/o/r/contents/%zz",
  "/repos/o/r/contents/\u0000",
  "/repos/o/r/contents/a b",
  "/repos/o/r/contents/a\tb",
  "/repos/o/r/contents/é",
  "/repos/o/r/contents/a#b",
  "//repos/o/r",
  "/repos//o/r",
  "/repos/o//r",
  "/repos/o/r//issues",
  "/repos/o/r/issues/",
  "/repos/o/r/",
  "//evil.example/repos/o/r",
  "/repos/o/r;x/issues",
  "/repos/o;x/r/issues",
  "/repos/o/r/issues;x",
  "/repos/o/r/..;/..;/user",
  "/repos/o/r\\..\\x",
  "/repos/o/r/%69ssues",
  "/%72epos/o/r",
  "/repos/%6f/r",
  "/repos/o/%72",
  "/repos/o/r%2egit",
  "/repos/o/r.git",
  "/repos/o/r.GIT/issues",
  "/REPOS/o/r",
  "/repos/o/r/Issues",
  "/repos/*/r",
  "/repos/o/*",
  "/repos/o r/x",
  "/repos/o/r%20/issues",
  "/repos/o/r%00/issues",
  "/repos/-o/r",
  "/repos/o/r?x/issues",
  "repos/o/r",
  "",
  `/repos/o/r/contents/${"a/".repeat(200)}x`,
  `/repos/o/r/contents/${"a".repeat(9_000)}`,
])("the path %j is unresolved", (path) => {
  for (const method of ["GET", "PUT", "POST", "DELETE"])
    expect(told(method, path)).toBe("unresolved");
});

test("a repository's metadata is repos:read to a policy that knows only that", () => {
  expect(resolve("GET", "/repos/o/r")).toMatchObject({
    actions: [{ action: "metadata:read", broader: ["repos:read"] }],
  });
});

test("a reason and a hint say what to do, and repeat nothing of the path", () => {
  const resolution = resolve("GET", "/repos/o/r/contents/s3cr3t%2e");
  expect(resolution).toMatchObject({
    kind: "unresolved",
    reason: expect.stringContaining("encodes a letter") as string,
    hint: expect.any(String) as string,
  });
  expect(JSON.stringify(resolution)).not.toContain("s3cr3t");
});

test.each([
  ["GET", "/repos/octo/hello.git/issues"],
  ["GET", "/repos/octo/hello.GIT/issues"],
  ["GET", "/repos/oc%20to/hello/issues"],
  ["GET", "/repos/oc%40to/hello/issues"],
  ["GET", "/repos/octo/hel%2Flo/issues"],
  ["GET", "/repos/octo/hel%3Alo/issues"],
  ["GET", "/repos/oct%C3%B6/hello/issues"],
  ["DELETE", "/repos/octo/hello%21"],
  ["POST", "/repos/octo/hello.git/generate"],
])("%s %s names no repository, and is denied", (method, path) => {
  expect(told(method, path)).toBe("unresolved");
});
