import { expect, test } from "vitest";
import { request } from "../../testing.ts";
import { categoriesOfMutation } from "./categories.ts";
import { resolveGraphql } from "./resolve.ts";
import { fieldNames } from "./schema.ts";
import { LINKS } from "./walk.ts";

const JSON_TYPE = { "content-type": "application/json; charset=utf-8" };

function send(
  body: unknown,
  headers: Readonly<Record<string, string>> = JSON_TYPE,
  line = "POST https://api.github.com/graphql",
) {
  return resolveGraphql(
    request(line, {
      headers,
      body: typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body),
    }),
  );
}

/**
 * `action resource+resource, ...` in alphabetical order, or `unresolved`. Narrow actions are shown
 * by their wider name, which policies may use.
 */
function told(query: string, variables?: unknown): string {
  const resolution = send(variables === undefined ? { query } : { query, variables });
  if (resolution.kind === "unresolved") return "unresolved";
  const lines = resolution.actions.map(
    ({ action, broader, resources }) =>
      `${broader?.[0] ?? action} ${resources
        .map((each) => (each.kind === "scoped" ? each.value : each.kind))
        .filter((each, at, all) => all.indexOf(each) === at)
        .join("+")}`,
  );
  return [...new Set(lines)].sort().join(", ");
}

test.each([
  [
    "mutation{createIssue(input:{}){clientMutationId}}",
    [["graphql:createIssue", ["issues:write"]]],
  ],
  [
    "mutation{mergePullRequest(input:{}){clientMutationId}}",
    [
      ["graphql:mergePullRequest", ["pulls:write"]],
      ["contents:write", undefined],
    ],
  ],
  [
    "mutation{a:addStar(input:{}){clientMutationId} b:removeStar(input:{}){clientMutationId}}",
    [
      ["graphql:addStar", ["users:write"]],
      ["graphql:removeStar", ["users:write"]],
    ],
  ],
  [
    '{repository(owner:"o",name:"r"){name issues(first:1){nodes{title}}}}',
    [
      ["metadata:read", ["repos:read"]],
      ["issues:read", undefined],
    ],
  ],
  ['{repository(owner:"o",name:"r"){rulesets(first:1){nodes{name}}}}', [["repos:read", undefined]]],
])("%s is %j", (query, expected) => {
  const resolution = send({ query });
  const actions = resolution.kind === "resolved" ? resolution.actions : [];
  expect(actions.map(({ action, broader }) => [action, broader])).toEqual(expected);
});

const inRepo = (fields: string): string => `{repository(owner:"o",name:"r"){${fields}}}`;

// As gh 2.x sends them, shortened.
test.each([
  [
    "gh pr list",
    `fragment pr on PullRequest{number,title,state,url,headRefName,headRepositoryOwner{id,login,...on User{name}},isCrossRepository,isDraft,createdAt}
     query PullRequestList($owner:String!,$repo:String!,$limit:Int!,$endCursor:String,$state:[PullRequestState!]=OPEN){
       repository(owner:$owner,name:$repo){pullRequests(states:$state,first:$limit,after:$endCursor,orderBy:{field:CREATED_AT,direction:DESC}){totalCount,nodes{...pr},pageInfo{hasNextPage,endCursor}}}}`,
    { owner: "o", repo: "r", limit: 30 },
    "pulls:read o/r",
  ],
  [
    "gh pr view",
    `query PullRequestByNumber($owner:String!,$repo:String!,$pr_number:Int!){repository(owner:$owner,name:$repo){pullRequest(number:$pr_number){
       url,number,title,state,body,author{login,...on User{id,name}},autoMergeRequest{mergeMethod},isDraft,maintainerCanModify,mergeable,additions,
       headRefName,baseRefName,headRepositoryOwner{id,login,...on User{name}},headRepository{id,name,nameWithOwner},isCrossRepository,
       reviewRequests(first:100){nodes{requestedReviewer{__typename,...on User{login},...on Team{organization{login}name,slug}}}},
       reviews(first:100){nodes{id,author{login},authorAssociation,submittedAt,body,state,commit{oid},reactionGroups{content,users{totalCount}}}pageInfo{hasNextPage,endCursor}totalCount},
       assignees(first:100){nodes{id,login,name,databaseId}totalCount},labels(first:100){nodes{id,name,description,color},totalCount},
       milestone{number,title,description,dueOn},comments(first:100){nodes{id,author{login,...on User{id,name}},body,createdAt,isMinimized,reactionGroups{content,users{totalCount}}}totalCount},
       closingIssuesReferences(first:100){nodes{id,number,url,repository{id,name,owner{id,login}}}pageInfo{hasNextPage,endCursor}},
       commits(last:1){totalCount,nodes{commit{oid,statusCheckRollup{contexts(first:100){nodes{__typename...on StatusContext{context,state,targetUrl}...on CheckRun{name,checkSuite{workflowRun{workflow{name}}},status,conclusion}},pageInfo{hasNextPage}}}}}}}}}`,
    { owner: "o", repo: "r", pr_number: 1 },
    "actions:read o/r, checks:read o/r, contents:read o/r, issues:read o/r, pulls:read o/r",
  ],
  [
    "gh repo view",
    `query RepositoryInfo($owner:String!,$name:String!){repository(owner:$owner,name:$name){id,name,owner{login},hasIssuesEnabled,description,hasWikiEnabled,viewerPermission,
       defaultBranchRef{name},parent{id,name,owner{id,login}},templateRepository{id,name,owner{id,login}},mergeCommitAllowed,primaryLanguage{name},licenseInfo{key,name,nickname}}}`,
    { owner: "o", name: "r" },
    "contents:read o/r, repos:read o/r",
  ],
  [
    "gh pr create, looking for forks",
    `fragment repo on Repository{id name owner{login} viewerPermission defaultBranchRef{name} isPrivate}
     query RepositoryNetwork{viewer{login} repo_000: repository(owner:"o",name:"r"){...repo parent{...repo}}}`,
    undefined,
    "contents:read o/r, repos:read o/r, users:read none",
  ],
  [
    "gh issue list",
    "query " +
      "IssueList($owner:String!,$repo:String!,$limit:Int){repository(owner:$owner,name:" +
      "$repo){hasIssuesEnabled issues(first:$limit){totalCount " +
      "nodes{number,title,labels(first:9){nodes{name}}}}}}",
    { owner: "o", repo: "r", limit: 1 },
    "issues:read o/r, repos:read o/r",
  ],
  [
    "gh pr list --search",
    "query " +
      "PullRequestSearch($q:String!,$limit:Int!){search(query:$q,type:ISSUE,first:" +
      "$limit){issueCount nodes{...on PullRequest{number,title}}}}",
    { q: "repo:o/r is:pr author:@me", limit: 30 },
    "pulls:read o/r, search:read o/r",
  ],
  [
    "gh's look at what the schema has",
    "query " +
      `Repository_fields{Repository:__type(name:"Repository"){fields(includeDeprecated:` +
      "true){name}}}",
    undefined,
    "meta:read none",
  ],
  [
    "gh issue create",
    "mutation IssueCreate($input:CreateIssueInput!){createIssue(input:$input){issue{id,url}}}",
    { input: { repositoryId: "R_1", title: "x" } },
    "issues:write unscopable",
  ],
  [
    "gh pr create",
    "mutation " +
      "PullRequestCreate($input:CreatePullRequestInput!){createPullRequest(input:" +
      "$input){pullRequest{id,url}}}",
    { input: { repositoryId: "R_1" } },
    "pulls:write unscopable",
  ],
  [
    "gh pr merge",
    "mutation " +
      "PullRequestMerge($input:MergePullRequestInput!){mergePullRequest(input:" +
      "$input){clientMutationId}}",
    { input: {} },
    "contents:write unscopable, pulls:write unscopable",
  ],
  ["gh auth status", "query UserCurrent{viewer{login}}", undefined, "users:read none"],
  ["octokit rate limit", "{rateLimit{cost remaining resetAt}}", undefined, "meta:read none"],
])("%s", (_name, query, variables, expected) => {
  expect(told(query, variables)).toBe(expected);
});

test.each([
  // All ways to name the repository.
  ['{repository(owner:"o",name:"r"){issue(number:1){title}}}', undefined, "issues:read o/r"],
  [
    '{repository(owner:"""o""",name:"\\u0072"){issue(number:1){title}}}',
    undefined,
    "issues:read o/r",
  ],
  [
    'query($o:String="o"){repository(owner:$o,name:"r"){issue(number:1){title}}}',
    undefined,
    "issues:read o/r",
  ],
  [
    'query($o:String="x"){repository(owner:$o,name:"r"){issue(number:1){title}}}',
    { o: "o" },
    "issues:read o/r",
  ],
  ['query($o:String!){repository(owner:$o,name:"r"){id}}', undefined, "unresolved"],
  ['query($o:String!){repository(owner:$o,name:"r"){id}}', { o: 5 }, "unresolved"],
  ['query($o:String!){repository(owner:$o,name:"r"){id}}', { o: null }, "unresolved"],
  ['query($o:String="o"){repository(owner:$o,name:"r"){id}}', { o: null }, "unresolved"],
  ['{repository(owner:$o,name:"r"){id}}', { o: "o" }, "unresolved"],
  ['{repository(name:"r"){id}}', undefined, "unresolved"],
  ['{repository(owner:"o",owner:"x",name:"r"){id}}', undefined, "unresolved"],
  ['{repository(owner:o,name:"r"){id}}', undefined, "repos:read o/r"],
  ['{repository(owner:["o"],name:"r"){id}}', undefined, "unresolved"],
  ['{repository(owner:"o",name:"r/../x"){id}}', undefined, "unresolved"],
  ['{repository(owner:"o",name:"r.git"){id}}', undefined, "unresolved"],
  ['{repository(owner:"*",name:"r"){id}}', undefined, "unresolved"],
  // Several at once: all of them count.
  [
    '{a:repository(owner:"o",name:"r"){issue(number:1){title}} ' +
      'b:repository(owner:"x",name:"y"){issue(number:1){title}}}',
    undefined,
    "issues:read o/r+x/y",
  ],
  [
    'query A{repository(owner:"o",name:"r"){id}} query B{repository(owner:"x",name:"y"){id}}',
    undefined,
    "repos:read o/r+x/y",
  ],
  [
    'query A{repository(owner:"o",name:"r"){id}} mutation ' +
      'B{deleteRef(input:{refId:"1"}){clientMutationId}}',
    undefined,
    "contents:write unscopable, repos:read o/r",
  ],
  [
    'query($no:Boolean!){repository(owner:"x",name:"y") @skip(if:$no){id} ' +
      'repository(owner:"o",name:"r"){id}}',
    { no: true },
    "repos:read x/y+o/r",
  ],
  [
    '{...on Query{repository(owner:"x",name:"y"){id}} ...F} fragment F on ' +
      'Query{repository(owner:"o",name:"r"){id}}',
    undefined,
    "repos:read x/y+o/r",
  ],
  // Ways out of the repository.
  [inRepo('owner{repository(name:"x"){id}}'), undefined, "repos:read o/r+unscopable"],
  [inRepo("owner{repositories(first:9){nodes{name}}}"), undefined, "repos:read o/r+unscopable"],
  [
    inRepo(
      "owner{...on " +
        'Organization{repositories(first:9){nodes{object(expression:"HEAD:x"){...on ' +
        "Blob{text}}}}}}",
    ),
    undefined,
    "contents:read o/r+unscopable",
  ],
  [
    inRepo('forks(first:9){nodes{object(expression:"HEAD:x"){...on Blob{text}}}}'),
    undefined,
    "contents:read o/r+unscopable",
  ],
  [inRepo("parent{issues(first:9){nodes{title}}}"), undefined, "issues:read o/r+unscopable"],
  [inRepo("parent{description}"), undefined, "repos:read o/r+unscopable"],
  [
    inRepo(
      "pullRequest(number:1){reviewRequests(first:1){nodes{requestedReviewer{...on " +
        "RepositoryDiscussionAuthor{repositoryDiscussions(first:9){nodes{body}}}}}}}",
    ),
    undefined,
    "discussions:read o/r+unscopable",
  ],
  [
    inRepo("issue(number:1){projectItems(first:1){nodes{project{title readme}}}}"),
    undefined,
    "projects:read o/r+unscopable",
  ],
  [
    inRepo("owner{...on Organization{organizationBillingEmail}}"),
    undefined,
    "orgs:read o/r+unscopable",
  ],
  [
    inRepo("pullRequest(number:1){headRepository{description}}"),
    undefined,
    "repos:read o/r+unscopable",
  ],
  [
    inRepo("pullRequest(number:1){author{...on User{repositories(first:1){nodes{name}}}}}"),
    undefined,
    "repos:read o/r+unscopable",
  ],
  [
    inRepo("pullRequest(number:1){author{...on User{...P}}}") +
      "fragment P on User{issues(first:9){nodes{body}}}",
    undefined,
    "issues:read o/r+unscopable",
  ],
  [
    inRepo("pullRequest(number:1){closingIssuesReferences(first:1){nodes{title body}}}"),
    undefined,
    "issues:read o/r+unscopable",
  ],
  [
    inRepo("issue(number:1){subIssues(first:9){nodes{body}}}"),
    undefined,
    "issues:read o/r+unscopable",
  ],
  [
    inRepo("issue(number:1){parent{repository{issues(first:1){nodes{body}}}}}"),
    undefined,
    "issues:read o/r+unscopable",
  ],
  [
    inRepo(
      "issue(number:1){timelineItems(first:9){nodes{...on " +
        "CrossReferencedEvent{source{...on Issue{body}}}}}}",
    ),
    undefined,
    "issues:read o/r+unscopable",
  ],
  [
    inRepo(
      "issue(number:1){timelineItems(first:9){nodes{...on " +
        "CrossReferencedEvent{source{...on Issue{number url}}}}}}",
    ),
    undefined,
    "repos:read o/r",
  ],
  [
    inRepo("issue(number:1){projectItems(first:9){nodes{project{title}}}}"),
    undefined,
    "projects:read o/r",
  ],
  [
    inRepo("issue(number:1){projectItems(first:9){nodes{content{...on Issue{body}}}}}"),
    undefined,
    "issues:read o/r+unscopable",
  ],
  [
    inRepo("collaborators(first:9){nodes{login organizations(first:9){nodes{name}}}}"),
    undefined,
    "orgs:read o/r+unscopable",
  ],
  [
    inRepo(
      "pullRequest(number:1){reviewRequests(first:1){nodes{requestedReviewer{...on " +
        "User{issues(first:9){nodes{body}}}}}}}",
    ),
    undefined,
    "issues:read o/r+unscopable",
  ],
  [
    inRepo(
      "pullRequest(number:1){reviewRequests(first:1){nodes{requestedReviewer{...on " +
        "Team{discussions(first:9){nodes{body}}}}}}}",
    ),
    undefined,
    "teams:read o/r+unscopable",
  ],
  [
    inRepo(
      'ref(qualifiedName:"main"){compare(headRef:"x:main"){commits(first:9){nodes{message}}}}',
    ),
    undefined,
    "contents:read o/r+unscopable",
  ],
  [
    inRepo("pullRequest(number:1){headRef{target{...on Commit{tree{entries{name}}}}}}"),
    undefined,
    "contents:read o/r+unscopable",
  ],
  [
    inRepo("rulesets(first:1){nodes{source{...on Repository{issues(first:1){nodes{body}}}}}}"),
    undefined,
    "issues:read o/r+unscopable",
  ],
  [inRepo('object(expression:"HEAD:README.md"){...on Blob{text}}'), undefined, "contents:read o/r"],
  [inRepo("tempCloneToken"), undefined, "unresolved"],
  [inRepo("x:tempCloneToken"), undefined, "unresolved"],
  [inRepo("packages(first:1){nodes{name}}"), undefined, "packages:read o/r+unscopable"],
  // Requests that name no repository.
  ["{viewer{login email}}", undefined, "users:read none"],
  ["{viewer{repositories(first:9){nodes{name}}}}", undefined, "repos:read unscopable"],
  ['{viewer{organization(login:"x"){name}}}', undefined, "orgs:read unscopable"],
  ['{node(id:"I_1"){...on Issue{title}}}', undefined, "issues:read unscopable"],
  ['{nodes(ids:["I_1"]){id}}', undefined, "repos:read unscopable"],
  [
    '{resource(url:"https://github.com/o/r"){...on Repository{description}}}',
    undefined,
    "repos:read unscopable",
  ],
  [
    '{organization(login:"o"){repository(name:"r"){issue(number:1){title}}}}',
    undefined,
    "issues:read unscopable",
  ],
  ['{user(login:"o"){login}}', undefined, "users:read unscopable"],
  [
    '{relay{repository(owner:"x",name:"y"){issue(number:1){body}}}}',
    undefined,
    "issues:read unscopable",
  ],
  [
    '{search(query:"is:pr",type:ISSUE,first:9){nodes{...on PullRequest{title}}}}',
    undefined,
    "pulls:read unscopable, search:read unscopable",
  ],
  [
    '{search(query:"repo:o/r",type:REPOSITORY,first:9){nodes{...on Repository{name}}}}',
    undefined,
    "repos:read unscopable, search:read unscopable",
  ],
  [
    '{search(query:"repo:o/r org:x",type:ISSUE,first:9){nodes{...on Issue{title}}}}',
    undefined,
    "issues:read unscopable, search:read unscopable",
  ],
  ["{noSuchField{id}}", undefined, "unresolved"],
  [inRepo("noSuchField{id}"), undefined, "unresolved"],
  [inRepo("aFieldOfTomorrow"), undefined, "repos:read o/r"],
  [inRepo("accessTokenOfTomorrow"), undefined, "unresolved"],
  // Mutations.
  [
    'mutation{createCommitOnBranch(input:{branch:{repositoryNameWithOwner:"o/r",branchName:' +
      '"b"}}){commit{oid url}}}',
    undefined,
    "contents:write o/r",
  ],
  [
    "mutation($i:CreateCommitOnBranchInput!){createCommitOnBranch(input:$i){commit{oid}}}",
    { i: { branch: { repositoryNameWithOwner: "o/r", branchName: "b" } } },
    "contents:write o/r",
  ],
  [
    'mutation{createCommitOnBranch(input:{branch:{id:"R_1",repositoryNameWithOwner:"o/' +
      'r"}}){commit{oid}}}',
    undefined,
    "contents:write unscopable",
  ],
  [
    'mutation{createCommitOnBranch(input:{branch:{repositoryNameWithOwner:"o/r",' +
      'repositoryNameWithOwner:"x/y"}}){commit{oid}}}',
    undefined,
    "contents:write unscopable",
  ],
  [
    "mutation{createIssue(input:{}){issue{repository{issues(first:9){nodes{body}}}}}}",
    undefined,
    "issues:read unscopable, issues:write unscopable",
  ],
  [
    'mutation{addStar(input:{starrableId:"1"}){clientMutationId}}',
    undefined,
    "users:write unscopable",
  ],
  ["mutation{deleteTheInternet(input:{}){clientMutationId}}", undefined, "unresolved"],
  ["subscription{x}", undefined, "unresolved"],
  // Shapes.
  ["{a{...F}} fragment F on Repository{...F}", undefined, "unresolved"],
  [
    `${inRepo("...A")} fragment A on Repository{...B} fragment B on Repository{...A}`,
    undefined,
    "unresolved",
  ],
  [inRepo("...Missing"), undefined, "unresolved"],
  [
    `${inRepo("...A")} fragment A on Repository{id} fragment A on Repository{name}`,
    undefined,
    "unresolved",
  ],
  [inRepo("...on Nothing{id}"), undefined, "unresolved"],
  ["fragment A on Repository{id}", undefined, "unresolved"],
  ["type Query{a:Int}", undefined, "unresolved"],
  ["{", undefined, "unresolved"],
  ["", undefined, "unresolved"],
])("%s", (query, variables, expected) => {
  expect(told(query, variables)).toBe(expected);
});

const OK = { query: inRepo("id") };

test.each<[string, () => ReturnType<typeof send>]>([
  ["a batch", () => send([OK])],
  ["text", () => send(JSON.stringify("x"))],
  ["null", () => send("null")],
  ["no JSON", () => send("query=x")],
  ["nothing", () => send("")],
  ["a second query", () => send('{"query":"{viewer{login}}","query":"{viewer{id}}"}')],
  [
    "a second query, escaped",
    () => send('{"query":"{viewer{login}}","\\u0071uery":"{viewer{id}}"}'),
  ],
  ["a variable twice", () => send('{"query":"{viewer{login}}","variables":{"a":1,"a":2}}')],
  [
    "a variable twice, deep within",
    () => send('{"query":"{viewer{login}}","variables":{"a":[{"b":1,"b":2}]}}'),
  ],
  ["__proto__", () => send('{"query":"{viewer{login}}","variables":{"__proto__":{"o":"x"}}}')],
  ["extensions", () => send({ ...OK, extensions: { persistedQuery: { sha256Hash: "x" } } })],
  ["a persisted query", () => send({ id: "x" })],
  ["Query", () => send({ Query: "{viewer{login}}" })],
  ["variables as text", () => send({ ...OK, variables: "{}" })],
  ["operationName as a number", () => send({ ...OK, operationName: 1 })],
  [
    "a byte order mark",
    () => send(Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from(JSON.stringify(OK))])),
  ],
  [
    "bytes that are not UTF-8",
    () => send(Buffer.from('{"query":"{viewer{login}}\xff"}', "latin1")),
  ],
  [
    "UTF-16",
    () => send(Buffer.from(JSON.stringify(OK), "utf16le"), { "content-type": "application/json" }),
  ],
  ["a form", () => send(OK, { "content-type": "application/x-www-form-urlencoded" })],
  ["no type", () => send(OK, {})],
  ["two types", () => send(OK, { "content-type": "application/json, text/plain" })],
  ["another charset", () => send(OK, { "content-type": "application/json; charset=utf-7" })],
  ["gzip", () => send(OK, { ...JSON_TYPE, "content-encoding": "gzip" })],
  ["GET", () => send(OK, JSON_TYPE, "GET https://api.github.com/graphql")],
  [
    "a query string",
    () => send(OK, JSON_TYPE, "POST https://api.github.com/graphql?query={viewer{login}}"),
  ],
  ["nesting without end", () => send({ query: "{a".repeat(100_000) })],
  [
    "JSON nested without end",
    () =>
      send(
        `{"query":"{viewer{login}}","variables":{"a":${"[".repeat(9_000)}${"]".repeat(9_000)}}}`,
      ),
  ],
  [
    "fragments within fragments without end",
    () =>
      send({ query: `{viewer{${"...{".repeat(800)}${"id ".repeat(9_000)}${"}".repeat(800)}}}` }),
  ],
  ["too many fields", () => send({ query: `{viewer{${"login ".repeat(30_000)}}}` })],
])("refuses %s, and says what to do", (_name, sent) => {
  expect(sent()).toMatchObject({
    kind: "unresolved",
    reason: expect.any(String) as string,
    hint: expect.any(String) as string,
  });
});

test("fragments that stand for billions of fields are judged in time that their text takes", () => {
  const layers = Array.from(
    { length: 60 },
    (_, at) =>
      `fragment F${at} on Repository{a${at}:parent{...F${at + 1}} ` +
      `b${at}:parent{...F${at + 1}} ...F${at + 1} ...F${at + 1}}`,
  );
  const query = `${inRepo("...F0")} ${layers.join(" ")} fragment F60 on Repository{description}`;
  expect(told(query)).toBe("repos:read o/r+unscopable");
});

test("each link between repositories that is kept an eye on is a field of GitHub's schema", () => {
  for (const link of LINKS) {
    const [type = "", field = ""] = link.split(".");
    expect([link, fieldNames(type).includes(field)]).toEqual([link, true]);
  }
});

test("every mutation of GitHub's schema is known", () => {
  const mutations = fieldNames("Mutation");
  expect(mutations.length).toBeGreaterThan(240);
  expect(mutations.filter((name) => categoriesOfMutation(name) === undefined)).toEqual([]);
});

test("what a mutation does to code is contents:write", () => {
  for (const name of [
    "createRef",
    "updateRef",
    "updateRefs",
    "deleteRef",
    "createCommitOnBranch",
    "mergeBranch",
    "mergePullRequest",
    "enablePullRequestAutoMerge",
    "enqueuePullRequest",
    "updatePullRequestBranch",
    "revertPullRequest",
  ]) {
    expect(categoriesOfMutation(name)).toContain("contents");
  }
});

test.each([
  ["subscription{viewer{login}}", "Subscriptions are not served"],
  ["fragment F on Query{viewer{login}}", "The document holds no operation"],
  ["{viewer{id}} type X{a:Int}", "The document holds more than operations and fragments"],
  ["{...F} fragment F on Query{rateLimit{cost}} fragment F on Query{viewer{id}}", "two fragments"],
  ["{...on User{viewer{login}}}", "a fragment of another type than its root"],
  ['{repository(name:"r"){name}}', "`repository` names no repository"],
  ["mutation{noSuchMutation(input:{}){clientMutationId}}", "noSuchMutation is not known here"],
  ["{noSuchField}", "What noSuchField asks for is not known here"],
])("%s is refused for its own reason", (query, reason) => {
  const resolution = send({ query });
  expect(resolution.kind === "unresolved" && resolution.reason).toContain(reason);
});

test.each([
  // Only what the caller is called is about nobody else.
  ["{viewer{login ...on User{id}}}", "users:read none"],
  ["{viewer{status{message}}}", "users:read unscopable"],
  ["{viewer{login status{message}}}", "users:read unscopable"],
  [
    "{viewer{login repositories(first:1){totalCount}}}",
    "repos:read unscopable, users:read unscopable",
  ],
  // A search of issues is confined by its text, any other is not.
  [
    '{search(query:"repo:o/r",type:ISSUE_ADVANCED,first:1){nodes{...on Issue{title}}}}',
    "issues:read o/r, search:read o/r",
  ],
  [
    '{search(query:"repo:o/r",type:REPOSITORY,first:1){nodes{...on Issue{title}}}}',
    "issues:read unscopable, search:read unscopable",
  ],
  [
    '{search(query:"repo:o/r",first:1){nodes{...on Issue{title}}}}',
    "issues:read unscopable, search:read unscopable",
  ],
  // Actions that only the type of a node determines.
  ['{user(login:"x"){__typename}}', "users:read unscopable"],
  ['{organization(login:"x"){__typename}}', "orgs:read unscopable"],
  ['{node(id:"x"){__typename}}', "repos:read unscopable"],
  ["mutation{__typename}", "meta:read none"],
  // The name of a repository confines no other mutation.
  [
    'mutation{deleteRef(input:{branch:{repositoryNameWithOwner:"o/r"}}){clientMutationId}}',
    "contents:write unscopable",
  ],
  [
    'mutation{createCommitOnBranch(input:{branch:{id:"x",repositoryNameWithOwner:"o/r"}}){clientMutationId}}',
    "contents:write unscopable",
  ],
  [
    "mutation{createCommitOnBranch(input:{branch:{repositoryNameWithOwner:1}}){clientMutationId}}",
    "contents:write unscopable",
  ],
  [
    'mutation{createCommitOnBranch(input:{branch:"o/r"}){clientMutationId}}',
    "contents:write unscopable",
  ],
  // One repository, in two spellings.
  [
    '{a:repository(owner:"O",name:"r"){name} b:repository(owner:"o",name:"R"){name}}',
    "repos:read o/R",
  ],
])("%s: %s", (query, expected) => {
  expect(told(query)).toBe(expected);
});

test.each([
  "application/jsonx",
  "x-application/json",
  "application/json; charset=utf-8; x",
  "application/json; charset=utf-8x",
])("a body that is declared as %s is refused", (type) => {
  expect(send(OK, { "content-type": type }).kind).toBe("unresolved");
});
