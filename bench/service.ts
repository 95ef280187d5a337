/**
 * Requests of an agent to a service in the benchmark of the sidecar, over TLS, and the token with
 * which they must arrive.
 */
import { JSON_BODY } from "./answers.ts";

/** Requests per second at which CPU is compared: a third of a sidecar's maximum on one CPU. */
export const SIDECAR_RATE = 1_000;

export const HOST = "api.github.com";
/** The service refuses every request without it, so each 200 proves that it was injected. */
export const REAL_TOKEN = "ghp_bench0123456789abcdefABCDEF0123456789";
export const AGENTS_TOKEN = "agents-own-token";
export const BODY_BYTES = 2_048;

const HEADERS = [
  `host: ${HOST}`,
  "accept: application/vnd.github+json",
  "accept-encoding: gzip",
  "content-type: application/json; charset=utf-8",
  "time-zone: Europe/Berlin",
  "user-agent: GitHub CLI 2.80.0",
  "x-github-api-version: 2022-11-28",
];

/** A request like those of `gh`, evaluated by its head only. */
export function restRequest(token: string): string {
  return [
    `GET /repos/octo/hello/pulls?state=open&per_page=30 HTTP/1.1`,
    ...HEADERS,
    `authorization: token ${token}`,
    "",
    "",
  ].join("\r\n");
}

const QUERY = `fragment pr on PullRequest{number,title,state,url,headRefName,headRepositoryOwner{id,login,...on User{name}},isCrossRepository,isDraft,createdAt}
query PullRequestList($owner:String!,$repo:String!,$limit:Int!,$endCursor:String,$state:[PullRequestState!]=OPEN){
  repository(owner:$owner,name:$repo){pullRequests(states:$state,first:$limit,after:$endCursor,orderBy:{field:CREATED_AT,direction:DESC}){totalCount,nodes{...pr},pageInfo{hasNextPage,endCursor}}}}`;

/** A request like those of `gh pr list`, evaluated by its body of {@link BODY_BYTES} bytes. */
export function graphqlRequest(token: string): string {
  const body = (endCursor: string): string =>
    JSON.stringify({
      query: QUERY,
      variables: { owner: "octo", repo: "hello", limit: 30, endCursor },
    });
  const whole = body("Y".repeat(BODY_BYTES - body("").length));
  return [
    `POST /graphql HTTP/1.1`,
    ...HEADERS,
    `authorization: token ${token}`,
    `content-length: ${whole.length}`,
    "",
    whole,
  ].join("\r\n");
}

function answer(status: string, body: string): Buffer {
  const head =
    `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\nx-github-request-id: ` +
    `BENCH\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n`;
  return Buffer.from(head + body);
}

export const WHOLE = answer("200 OK", JSON_BODY);
export const REFUSED = answer("401 Unauthorized", JSON.stringify({ message: "Bad credentials" }));
