/** The edges of what a query may reach, how large it may be, and how its body is read. */
import { describe, expect, test } from "vitest";
import { request } from "../../testing.ts";
import { resolveGraphql } from "./resolve.ts";

function send(body: object, type = "application/json"): ReturnType<typeof resolveGraphql> {
  return resolveGraphql(
    request("POST https://api.github.com/graphql", {
      headers: { "content-type": type },
      body: JSON.stringify(body),
    }),
  );
}

/** Returns `action resource+resource`, or `unresolved`; narrow actions by their wider name. */
function told(query: string, variables?: object): string {
  const resolution = send(variables === undefined ? { query } : { query, variables });
  if (resolution.kind === "unresolved") return "unresolved";
  return resolution.actions
    .map(
      ({ action, broader, resources }) =>
        `${broader?.[0] ?? action} ${resources
          .map((each) => (each.kind === "scoped" ? each.value : each.kind))
          .join("+")}`,
    )
    .toSorted((a, b) => a.localeCompare(b))
    .join(", ");
}

const inRepo = (fields: string): string => `{repository(owner:"o",name:"r"){${fields}}}`;

describe("an object outside of the repository may be named", () => {
  test.each([
    ["pullRequest(number:1){headRepository{__typename name}}", "repos:read o/r"],
    ["pullRequest(number:1){title headRepository{__typename}}", "pulls:read o/r"],
    ["owner{avatarUrl login}", "repos:read o/r"],
    ["owner{...on Organization{description name}}", "repos:read o/r"],
    ["issue(number:1){author{...on User{company bio}} title}", "issues:read o/r"],
    ["rulesets(first:1){nodes{enforcement}}", "repos:read o/r"],
    ["parent{owner{login}}", "repos:read o/r"],
  ])("%s is %s", (fields, expected) => {
    expect(told(inRepo(fields))).toBe(expected);
  });

  test.each([
    ['parent{owner{repository(name:"x"){name}}}', "unscopable"],
    ["parent{defaultBranchRef{target{oid}}}", "unscopable"],
    ["parent{isEmpty}", "unscopable"],
    ["owner{...on Organization{twitterUsername}}", "unscopable"],
    ["issue(number:1){parent{title}}", "unscopable"],
    [
      "pullRequest(number:1){mergeCommit{associatedPullRequests(first:1){nodes{body}}}}",
      "unscopable",
    ],
    ["parent{owner{...on Organization{teams(first:1){nodes{name}}}}}", "unscopable"],
  ])("%s leads out", (fields, expected) => {
    expect(told(inRepo(fields))).toContain(expected);
  });

  test("and one way out is not undone by what follows", () => {
    expect(told(inRepo("parent{description} issue(number:1){title}"))).toBe(
      "issues:read o/r+unscopable, repos:read o/r+unscopable",
    );
  });
});

describe("what may be a credential is refused", () => {
  test.each([
    inRepo("tempCloneToken"),
    inRepo("parent{tempCloneToken}"),
    '{node(id:"x"){...on Repository{tempCloneToken}}}',
    "{viewer{someSecret}}",
    "mutation{regenerateVerifiableDomainToken(input:{}){verificationToken}}",
    "mutation{x:regenerateVerifiableDomainToken(input:{}){x:verificationToken}}",
    "mutation{createIssue(input:{}){issue{repository{tempCloneToken}}}}",
  ])("%s", (query) => {
    expect(told(query)).toBe("unresolved");
  });
});

test.each([
  "mutation{createIssue(input:{}){clientMutationId{id}}}",
  "mutation{createIssue(input:{}){noSuchObject{id}}}",
  inRepo("name{id}"),
])("what lies below a field that has no known type is refused: %s", (query) => {
  expect(told(query)).toBe("unresolved");
});

describe("size", () => {
  const nested = (levels: number): string =>
    inRepo(`${"...{".repeat(levels)}id${"}".repeat(levels)}`);

  test("a query may be nested 200 levels deep", () => {
    expect(told(nested(198))).toBe("repos:read o/r");
    expect(told(nested(199))).toBe("unresolved");
  });

  test("only nesting is depth: what stands side by side is not", () => {
    const labels = Array.from({ length: 300 }, (_, at) => `l${at}:label(name:"x"){name}`);
    expect(told(inRepo(labels.join(" ")))).toBe("issues:read o/r");
  });

  test("fields that fragments repeat count each time", () => {
    const times = (count: number): string =>
      `{${"...F ".repeat(count)}} fragment F on Query{${"__typename ".repeat(99)}}`;
    expect(told(times(200))).toBe("meta:read none");
    expect(told(times(201))).toBe("unresolved");
  });

  test("a fragment may be used in several places, one after the other", () => {
    expect(
      told(
        'fragment F on Repository{description} {a:repository(owner:"o",name:"r"){...F} ' +
          'b:repository(owner:"x",name:"y"){...F ...F}}',
      ),
    ).toBe("repos:read o/r+x/y");
  });

  test("a fragment that was harmless inside is judged again outside", () => {
    expect(told(`fragment F on Repository{description} ${inRepo("...F parent{...F}")}`)).toBe(
      "repos:read o/r+unscopable",
    );
  });
});

describe("root fields", () => {
  test.each([
    ["{viewer{login}}", "users:read none"],
    ["{viewer{...on User{login}}}", "users:read none"],
    ["{viewer}", "users:read none"],
    ["{viewer{login organization{login}}}", "orgs:read unscopable, users:read unscopable"],
    ["{viewer{...on Repository{forkCount}}}", "repos:read unscopable"],
    ['{organization(login:"o")}', "orgs:read unscopable"],
    ["mutation{createIssue(input:{})}", "issues:write unscopable"],
    [
      "mutation{...on Mutation{createIssue(input:{}){clientMutationId}}}",
      "issues:write unscopable",
    ],
    ["{viewer{organizations(first:1){nodes{login}}}}", "orgs:read unscopable"],
    ['{viewer{repository(name:"x"){name}}}', "repos:read unscopable"],
    ["{viewer{starredRepositories(first:1){totalCount}}}", "users:read unscopable"],
    ['{license(key:"mit"){name}}', "meta:read none"],
    ["mutation{__typename}", "meta:read none"],
    ["{...on Repository{id}}", "unresolved"],
    ['mutation{...on Query{repository(owner:"o",name:"r"){id}}}', "unresolved"],
    [
      '{a:repository(owner:"o",name:"r"){id} b:repository(owner:"O",name:"R"){id}}',
      "repos:read O/R",
    ],
    ['{search(query:"repo:o/r",type:ISSUE,first:1){issueCount}}', "search:read o/r"],
    ['{search(query:"repo:o/r",type:ISSUE_ADVANCED,first:1){issueCount}}', "search:read o/r"],
    ['{search(query:"repo:o/r",type:USER,first:1){userCount}}', "search:read unscopable"],
    ['{search(query:"repo:o/r",first:1){issueCount}}', "search:read unscopable"],
    ["{search(type:ISSUE,first:1){issueCount}}", "search:read unscopable"],
    ['{search(query:["repo:o/r"],type:ISSUE,first:1){issueCount}}', "search:read unscopable"],
    [
      '{search(query:"repo:o/r",query:"org:x",type:ISSUE,first:1){issueCount}}',
      "search:read unscopable",
    ],
  ])("%s is %s", (query, expected) => {
    expect(told(query)).toBe(expected);
  });
});

describe("the repository of a mutation", () => {
  const commit = (branch: string): string =>
    `mutation{createCommitOnBranch(input:{branch:${branch}}){clientMutationId}}`;

  test.each([
    [commit('{repositoryNameWithOwner:"o/r"}'), "o/r"],
    [commit('{id:null,repositoryNameWithOwner:"o/r"}'), "o/r"],
    [commit('{id:"",repositoryNameWithOwner:"o/r"}'), "unscopable"],
    [commit('{id:$none,repositoryNameWithOwner:"o/r"}'), "o/r"],
    [commit('{id:false,repositoryNameWithOwner:"o/r"}'), "unscopable"],
    [commit('{id:0,repositoryNameWithOwner:"o/r"}'), "unscopable"],
    [commit('{id:["x"],repositoryNameWithOwner:"o/r"}'), "unscopable"],
    [commit('{repositoryNameWithOwner:["o/r"]}'), "unscopable"],
    [commit("{repositoryNameWithOwner:null}"), "unscopable"],
    [commit('{repositoryNameWithOwner:"o/r/x"}'), "unscopable"],
    [commit('[{repositoryNameWithOwner:"o/r"}]'), "unscopable"],
    [commit("null"), "unscopable"],
    [
      'mutation{createCommitOnBranch(input:{branch:{repositoryNameWithOwner:"o/r"}},' +
        'input:{branch:{repositoryNameWithOwner:"x/y"}}){clientMutationId}}',
      "unscopable",
    ],
    ["mutation{createCommitOnBranch(input:[]){clientMutationId}}", "unscopable"],
    ["mutation{createCommitOnBranch{clientMutationId}}", "unscopable"],
    // Another mutation does not read these members, and takes an id from another one.
    [
      'mutation{deleteRef(input:{refId:"R",branch:{repositoryNameWithOwner:"o/r"}})' +
        "{clientMutationId}}",
      "unscopable",
    ],
    [
      'mutation($i:X={branch:{repositoryNameWithOwner:"o/r"}}){createCommitOnBranch(input:$i)' +
        "{clientMutationId}}",
      "o/r",
    ],
  ])("%s is in %s", (query, expected) => {
    const found = told(query);
    expect(found).toContain(` ${expected}`);
    if (expected !== "unscopable") expect(found).not.toContain("unscopable");
  });

  test.each<[object, string]>([
    [{ n: "o/r" }, "o/r"],
    [{ n: "x/y" }, "x/y"],
    [{}, "unscopable"],
    [{ n: null }, "unscopable"],
  ])("may come from a variable within: %j", (variables, expected) => {
    const query =
      "mutation($n:String!){createCommitOnBranch(input:{branch:{repositoryNameWithOwner:$n}})" +
      "{clientMutationId}}";
    expect(told(query, variables)).toContain(` ${expected}`);
  });
});

describe("a body", () => {
  const query = inRepo("description");

  test.each([
    "application/json",
    "application/json ",
    "application/json;charset=utf-8",
    'APPLICATION/JSON ; charset="UTF-8"',
  ])("declared as %j is read", (type) => {
    expect(send({ query }, type).kind).toBe("resolved");
  });

  test.each([
    "",
    "x-application/json",
    " application/json",
    "application/json; charset=utf-8; x",
    "application/json; charset=utf-16",
    "application/jsonx",
    "application/json x",
  ])("declared as %j is refused", (type) => {
    expect(send({ query }, type).kind).toBe("unresolved");
  });

  test.each<[object, string]>([
    [{ query, operationName: null, variables: null }, "resolved"],
    [{ query, operationName: "A", variables: {} }, "resolved"],
    [{ query, operationName: ["A"] }, "unresolved"],
    [{ query, variables: [] }, "unresolved"],
    [{ query, variables: false }, "unresolved"],
    [{ query: [query] }, "unresolved"],
    [{ variables: {} }, "unresolved"],
  ])("%j is %s", (body, expected) => {
    expect(send(body).kind).toBe(expected);
  });

  test("whose values are more than 20 000 tokens is refused", () => {
    const list = (length: number): string =>
      `query($a:[Int]=[${"1 ".repeat(length)}]){rateLimit{cost}}`;
    expect(told(list(19_900))).toBe("meta:read none");
    expect(told(list(20_000))).toBe("unresolved");
  });

  test("that was not read is refused", () => {
    const headers = { "content-type": "application/json" };
    const call = request("POST https://api.github.com/graphql", { headers });
    expect(resolveGraphql(call).kind).toBe("unresolved");
  });

  test("each refusal says its own reason", () => {
    const wrong: readonly unknown[] = [
      [],
      "text",
      {},
      { query: "{" },
      { query, variables: 1 },
      { query, operationName: 1 },
      { query, extensions: {} },
      { query: "{noSuchField{id}}" },
      { query: "subscription{x}" },
      { query: "fragment F on Repository{id}" },
    ];
    const reasons = wrong.map((body) => {
      const resolution = send(body as object);
      return resolution.kind === "unresolved" ? resolution.reason : "none";
    });
    expect(new Set(reasons).size).toBe(wrong.length);
    expect(reasons).not.toContain("none");
  });
});
