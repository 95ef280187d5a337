/** Names in the bodies of REST operations, and attempts to hide a name from the proxy. */
import { describe, expect, test } from "vitest";
import type { ServiceRequest } from "../contract.ts";
import { request } from "../testing.ts";
import { bodyResources, bodyRules } from "./rest-body.ts";

const REPOSITORY = { owner: "o", name: "r" };
const JSON_TYPE = "application/json";

function sent(body: unknown, type: string | undefined = JSON_TYPE, query = ""): ServiceRequest {
  return request(`POST https://api.github.com/x${query}`, {
    headers: type === undefined ? {} : { "content-type": type },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
}

/** Returns the values of the resources besides the path's; `outside` for what has none. */
function besides(operation: string, call: ServiceRequest): readonly string[] | undefined {
  return bodyResources(operation, call, REPOSITORY)?.map((each) =>
    each.kind === "scoped" ? each.value : "outside",
  );
}

test("an operation without a body to read is left to its path", () => {
  expect(besides("issues/create", sent({ head: "other:dev" }))).toBeUndefined();
  expect(besides("constructor", sent({}))).toBeUndefined();
});

describe("members", () => {
  test.each<[operation: string, body: unknown, expected: readonly string[]]>([
    ["pulls/create", { head: "o:" }, []],
    ["pulls/create", { head: "dev:x" }, ["outside"]],
    ["pulls/create", { head: "O:dev", head_repo: "other" }, ["O/other"]],
    ["pulls/create", { head: "dev", head_repo: "" }, ["outside"]],
    ["pulls/create", { head: "dev", head_repo: false }, ["outside"]],
    ["pulls/create", { head: "dev", head_repo: ".." }, ["outside"]],
    ["pulls/create", { head: "x:dev", head_repo: null }, ["outside"]],
    ["pulls/create", { head: null }, ["outside"]],
    ["issues/update", { duplicate_issue_id: 0 }, ["outside"]],
    ["issues/update", { duplicate_issue_id: false }, ["outside"]],
    ["issues/update", {}, []],
    ["repos/create-repo-ruleset", { rules: [{ workflows: [{ path: "x" }] }] }, []],
    ["repos/create-repo-ruleset", { rules: [{ a: [{ b: { repository_id: 0 } }] }] }, ["outside"]],
    ["repos/create-repo-ruleset", { rules: [{ repository_id: null }] }, []],
    ["repos/update-repo-ruleset", { Repository_ID: 5 }, ["outside"]],
    ["repos/update-repo-ruleset", { conditions: { repositoryIds: [5] } }, ["outside"]],
    ["security-advisories/create-repository-advisory", {}, []],
    ["security-advisories/create-repository-advisory", { start_private_fork: null }, []],
    ["security-advisories/create-repository-advisory", { start_private_fork: false }, []],
    ["security-advisories/create-repository-advisory", { start_private_fork: 0 }, ["outside"]],
    [
      "security-advisories/create-private-vulnerability-report",
      { start_private_fork: "false" },
      ["outside"],
    ],
  ])("%s %j", (operation, body, expected) => {
    expect(besides(operation, sent(body))).toEqual(expected);
  });
});

describe("a body that cannot be read is outside", () => {
  const { method, host, path, headers, query } = sent({});
  test.each<[string, ServiceRequest]>([
    ["not read", { method, host, path, headers, query, body: undefined }],
    ["compressed", { ...sent({}), headers: new Map([["content-encoding", "identity"]]) }],
    ["a list", sent([{}])],
    ["null", sent("null")],
    ["broken", sent("{")],
    ["with a member twice", sent('{"state":"open","state":"closed"}')],
  ])("%s", (_name, call) => {
    expect(besides("issues/update", call)).toEqual(["outside"]);
  });
});

describe("a deciding member outside of the JSON", () => {
  test.each([
    "?duplicate_issue_id=5",
    "?a=b&DUPLICATE_ISSUE_ID=5",
    "?a=b;duplicate_issue_id=5",
    "?%20duplicate_issue_id%20=5",
    "?duplicate%5Fissue%5Fid=5",
    "?duplicate_issue_id[]=5",
    "?duplicate_issue_id[a][b]=5",
    "?duplicate_issue_id[%0A]=5",
    "?duplicate_issue_id",
  ])("in the query %s", (query) => {
    expect(besides("issues/update", sent({}, JSON_TYPE, query))).toEqual(["outside"]);
  });

  test.each([
    "?state=open",
    "?duplicate_issue_ids=5",
    "?x=duplicate_issue_id",
    "?[duplicate_issue_id]=5",
  ])("not by the query %s", (query) => {
    expect(besides("issues/update", sent({}, JSON_TYPE, query))).toEqual([]);
  });

  const hidden = { title: "&duplicate_issue_id=5&" };
  test.each([
    undefined,
    "",
    "text/plain",
    "application/x-www-form-urlencoded",
    "x-application/json",
    "application/jsonp",
    "text/application/json",
  ])("in a form, if the body is declared as %j", (type) => {
    const call = sent(hidden, type ?? "");
    const headers = type === undefined ? new Map<string, string>() : call.headers;
    expect(besides("issues/update", { ...call, headers })).toEqual(["outside"]);
  });

  test.each([
    "application/json",
    " application/json",
    "APPLICATION/JSON; charset=utf-8",
    "application/vnd.github+json",
    "application/vnd.github.v3-x+json",
  ])("not in what is declared as %j", (type) => {
    expect(besides("issues/update", sent(hidden, type))).toEqual([]);
  });
});

test("the bodies that are judged are read, under both prefixes", () => {
  const rules = bodyRules(1_000);
  expect(rules.every(({ hosts, maxBytes }) => hosts?.length === 0 && maxBytes === 1_000)).toBe(
    true,
  );
  const lines = rules.flatMap(({ methods, paths }) =>
    (methods ?? []).flatMap((method) => paths.map((path) => `${method} ${path}`)),
  );
  expect(lines.filter((line) => !line.includes("/api/v3/")).toSorted()).toEqual([
    "PATCH /repos/{}/{}/issues/{}",
    "POST /repos/{}/{}/pulls",
    "POST /repos/{}/{}/rulesets",
    "POST /repos/{}/{}/security-advisories",
    "POST /repos/{}/{}/security-advisories/reports",
    "PUT /repos/{}/{}/rulesets/{}",
  ]);
  expect(lines).toHaveLength(12);
  expect(lines).toContain("PUT /api/v3/repos/{}/{}/rulesets/{}");
});
