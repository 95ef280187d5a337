/**
 * Two github Providers of one agent, under `svc run`: one reads one repository, the other writes
 * another one. Each request is judged by both, and goes out with the credential of the first one
 * that allows it.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { Machine } from "../support/clients/machine.ts";
import { GitBackend } from "../support/git-backend.ts";

const READER = "ghp_the-token-that-reads-0123456789abcdef";
const WRITER = "ghp_the-token-that-writes-0123456789abcde";

const secret = (name: string, token: string): object => ({
  apiVersion: "v1",
  kind: "Secret",
  metadata: { name },
  stringData: { token },
});
const provider = (name: string, allow: readonly string[], repository: string): object => ({
  apiVersion: "svc.io/v1",
  kind: "Provider",
  metadata: { name },
  spec: {
    type: "github",
    auth: { type: "token", secretRef: name },
    policy: { allow },
    scope: { repositories: [repository] },
  },
});

const readerGit = new GitBackend(READER);
const writerGit = new GitBackend(WRITER);
let machine: Machine;

beforeAll(async () => {
  readerGit.create("acme/readonly", ["main"]);
  writerGit.create("acme/open", ["main"]);
  machine = await Machine.start({
    hosts: ["api.github.com", "github.com"],
    resources: [
      secret("reader", READER),
      secret("writer", WRITER),
      provider("reader", ["*:read"], "acme/readonly"),
      provider("writer", ["*"], "acme/open"),
      {
        apiVersion: "svc.io/v1",
        kind: "Agent",
        metadata: { name: "coder" },
        spec: { models: [], providers: ["reader", "writer"] },
      },
    ],
  });
  machine.outside.handler = (request, response) => {
    if (request.host === "github.com") {
      const backend = request.url.startsWith("/acme/readonly.git/") ? readerGit : writerGit;
      return backend.serve(request, response);
    }
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ data: {} }));
  };
}, 300_000);

afterAll(async () => {
  await machine?.stop();
  readerGit.remove();
  writerGit.remove();
});

beforeEach(() => {
  machine.outside.requests.length = 0;
});

const REST = "https://api.github.com/repos";
const commitOn = (repository: string): string =>
  JSON.stringify({
    query: `mutation { createCommitOnBranch(input: {
      branch: {repositoryNameWithOwner: "${repository}", branchName: "main"},
      message: {headline: "x"}, expectedHeadOid: "0000000000000000000000000000000000000000"
    }) { commit { oid } } }`,
  });
const readOf = (repository: string): string => {
  const [owner = "", name = ""] = repository.split("/");
  return JSON.stringify({
    query: `{ repository(owner: "${owner}", name: "${name}") { issues(first: 1) { totalCount } } }`,
  });
};

/** Sends a request with curl. Returns the status, and the answer's message if it is a denial. */
async function ask(method: string, url: string, body = ""): Promise<[number, string]> {
  const { stdout } = await machine.run(
    [
      "curl",
      "-sS",
      "-X",
      method,
      "-H",
      "content-type: application/json",
      ...(body === "" ? [] : ["-d", body]),
      "-w",
      "\n%{http_code}",
      url,
    ],
    { agent: "coder" },
  );
  const lines = stdout.trim().split("\n");
  const answer = JSON.parse(lines.slice(0, -1).join("\n")) as { message?: string };
  return [Number(lines.at(-1)), answer.message ?? ""];
}

/** The credentials with which requests arrived. */
const arrived = (): readonly string[] =>
  machine.outside.requests.map(({ headers }) => String(headers.authorization));

describe("a request that one of them allows", () => {
  test.each([
    ["reads there", "GET", `${REST}/acme/readonly/issues`, "", READER],
    ["reads here", "GET", `${REST}/acme/open/issues`, "", WRITER],
    ["writes here", "POST", `${REST}/acme/open/issues`, '{"title":"x"}', WRITER],
    [
      "reads there by GraphQL",
      "POST",
      "https://api.github.com/graphql",
      readOf("acme/readonly"),
      READER,
    ],
    [
      "reads here by GraphQL",
      "POST",
      "https://api.github.com/graphql",
      readOf("acme/open"),
      WRITER,
    ],
    [
      "commits here by GraphQL",
      "POST",
      "https://api.github.com/graphql",
      commitOn("acme/open"),
      WRITER,
    ],
  ])("%s with its credential", async (_name, method, url, body, token) => {
    expect(await ask(method, url, body)).toEqual([200, ""]);
    expect(arrived()).toEqual([`Bearer ${token}`]);
  });
});

describe("a request that neither allows is denied, in the name of both", () => {
  test.each([
    ["writes there", "POST", `${REST}/acme/readonly/issues`, '{"title":"x"}'],
    ["deletes there", "DELETE", `${REST}/acme/readonly`, ""],
    [
      "commits there by GraphQL",
      "POST",
      "https://api.github.com/graphql",
      commitOn("acme/readonly"),
    ],
    ["reads elsewhere", "GET", `${REST}/acme/secret/issues`, ""],
    [
      "writes there, with the name in capitals",
      "POST",
      `${REST}/ACME/READONLY/issues`,
      '{"title":"x"}',
    ],
  ])("%s", async (_name, method, url, body) => {
    const [status, message] = await ask(method, url, body);
    expect(status).toBe(403);
    expect(message).toContain("reader");
    expect(message).toContain("writer");
    expect(arrived()).toEqual([]);
  });
});

describe("git", () => {
  const clone = (repository: string): string =>
    `git clone --quiet https://github.com/${repository}.git /tmp/clone && cd /tmp/clone && ` +
    "git config user.email agent@example.com && git config user.name agent && ";
  const push =
    "git commit --quiet --allow-empty -m x && git push --quiet origin HEAD:refs/heads/new";

  test("clones from both, and pushes to the one that may be written", async () => {
    const both = await machine.sh(
      `${clone("acme/readonly")} git rev-parse --verify --quiet HEAD >/dev/null && cd / && ` +
        `rm -rf /tmp/clone && ${clone("acme/open")} ${push}`,
      { agent: "coder" },
    );
    expect(both).toEqual({ code: 0, stdout: "", stderr: "" });
    expect(writerGit.git("acme/open", ["branch", "--list", "new"])).toContain("new");
  });

  test("does not push to the one that is only read", async () => {
    const { code, stderr } = await machine.sh(`${clone("acme/readonly")} ${push}`, {
      agent: "coder",
    });
    expect(code).not.toBe(0);
    expect(stderr).toMatch(/403|not allowed/);
    expect(readerGit.git("acme/readonly", ["branch", "--list", "new"])).toBe("");
  });
});
