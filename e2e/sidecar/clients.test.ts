/**
 * Clients as agents use them, unmodified, under `svc run`: they know the sidecar only through their
 * environment. Allowed requests arrive with the real credential, denied ones state the reason.
 */
import { execFile } from "node:child_process";
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { ROOT } from "../support/build.ts";
import { Machine } from "../support/clients/machine.ts";
import { GitBackend } from "../support/git-backend.ts";
import type { Received } from "../support/services.ts";

const TOKEN = "ghp_the-real-token-of-these-tests-0123456789";
const BASIC = `Basic ${Buffer.from(`x-access-token:${TOKEN}`).toString("base64")}`;
const PULLS = "https://api.github.com/repos/octo/hello/pulls";
const ELSEWHERE = "https://api.github.com/repos/other/hello/pulls";
const PYTHON = "/usr/bin/python3";

const provider = (name: string, policy: object): object => ({
  apiVersion: "svc.io/v1",
  kind: "Provider",
  metadata: { name },
  spec: {
    type: "github",
    auth: { type: "token", secretRef: "github" },
    policy,
    scope: { repositories: ["octo/*"] },
  },
});
const agent = (name: string, bound: string): object => ({
  apiVersion: "svc.io/v1",
  kind: "Agent",
  metadata: { name },
  spec: { models: [], providers: [bound] },
});

const git = new GitBackend(TOKEN);
const programs = mkdtempSync(path.join(os.tmpdir(), "svc-clients-"));
const BRANCHES = Array.from({ length: 60 }, (_, i) => (i === 0 ? "main" : `branch-${i}`));
let machine: Machine;

beforeAll(async () => {
  chmodSync(programs, 0o755);
  git.create("octo/hello", BRANCHES);
  git.create("other/hello", ["main"]);
  const run = promisify(execFile);
  const sources = path.join(ROOT, "e2e/support/clients");
  const compiling = Promise.all([
    run("go", ["build", "-o", path.join(programs, "get"), path.join(sources, "get.go")], {
      env: { ...process.env, CGO_ENABLED: "0", GOTOOLCHAIN: "local", GOFLAGS: "-mod=mod" },
    }),
    run("javac", ["-d", programs, path.join(sources, "Get.java")]),
  ]);
  const starting = Machine.start({
    hosts: [
      "api.github.com",
      "github.com",
      "uploads.github.com",
      "codeload.github.com",
      "raw.githubusercontent.com",
    ],
    resources: [
      {
        apiVersion: "v1",
        kind: "Secret",
        metadata: { name: "github" },
        stringData: { token: TOKEN },
      },
      provider("github", { allow: ["pulls:*", "contents:*", "users:read"], deny: ["pulls:write"] }),
      provider("github-read", { allow: ["contents:read"] }),
      agent("coder", "github"),
      agent("reader", "github-read"),
      {
        apiVersion: "svc.io/v1",
        kind: "Agent",
        metadata: { name: "root" },
        spec: { models: [], providers: ["github"], runAsUser: 0 },
      },
    ],
    shared: { python: path.join(ROOT, ".venv/clients"), programs },
  });
  machine = await starting;
  machine.outside.handler = (request, response) => {
    if (request.host === "github.com") return git.serve(request, response);
    const known = request.headers.authorization === `Bearer ${TOKEN}`;
    response.writeHead(known ? 200 : 401, { "content-type": "application/json" });
    response.end(
      JSON.stringify(
        known ? [{ number: 1, title: "a pull request" }] : { message: "Bad credentials" },
      ),
    );
  };
  await compiling;
}, 300_000);

afterAll(async () => {
  await machine?.stop();
  git.remove();
  rmSync(programs, { recursive: true, force: true });
});

beforeEach(() => {
  machine.outside.requests.length = 0;
});

const received = (): readonly Received[] => machine.outside.requests;

/** Nothing of the agent's own credentials may arrive. */
function expectOurCredential(asked = received()): void {
  expect(asked.length).toBeGreaterThan(0);
  for (const { host, headers } of asked)
    expect(headers.authorization).toBe(host === "github.com" ? BASIC : `Bearer ${TOKEN}`);
  expect(JSON.stringify(asked.map(({ url, rawHeaders }) => [url, rawHeaders]))).not.toMatch(
    /agents-own/,
  );
}

interface Answer {
  readonly status?: number;
  readonly protocol?: string;
  readonly body?: string;
  readonly error?: string;
}

const readJson = (line: string): Answer => JSON.parse(line) as Answer;

/** Status, protocol, body in base64. */
function readWords(line: string): Answer {
  const [status = "", protocol = "", base64 = ""] = line.split(" ");
  const body = Buffer.from(base64, "base64").toString("utf8");
  return status === "error"
    ? { error: `${protocol} ${body}` }
    : { status: Number(status), protocol, body };
}

describe("trusts by its environment alone", () => {
  /**
   * Client, variable, command, protocol, reader of a line. Without the variable, CURL_CA_BUNDLE and
   * SSL_CERT_FILE are also unset, because some clients fall back to them.
   */
  const CLIENTS: readonly (readonly [
    string,
    string,
    () => string,
    string,
    (line: string) => Answer,
  ])[] = [
    [
      "curl",
      "CURL_CA_BUNDLE",
      () => `sh ${machine.client("curl-get.sh")} --http1.1`,
      "HTTP/1.1",
      readWords,
    ],
    [
      "curl with HTTP/2",
      "CURL_CA_BUNDLE",
      () => `sh ${machine.client("curl-get.sh")} --http2`,
      "HTTP/2",
      readWords,
    ],
    [
      "Python's requests",
      "REQUESTS_CA_BUNDLE",
      () => `${PYTHON} ${machine.client("requests_get.py")}`,
      "HTTP/1.1",
      readJson,
    ],
    [
      "Node's fetch",
      "NODE_EXTRA_CA_CERTS",
      () => `${machine.node} ${machine.client("fetch-get.mjs")}`,
      "HTTP/1.1",
      readJson,
    ],
    ["Go's net/http", "SSL_CERT_FILE", () => `${machine.dir}/programs/get`, "HTTP/2.0", readJson],
    [
      "Java's java.net.http",
      "JAVA_TOOL_OPTIONS",
      () => `java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -cp ${machine.dir}/programs Get`,
      "HTTP_2",
      readWords,
    ],
  ];
  let lines: readonly (readonly string[])[];
  let asked: readonly Received[];

  beforeAll(async () => {
    machine.outside.requests.length = 0;
    const script = CLIENTS.map(
      (
        [, variable, command],
        i,
      ) => `${command()} '${PULLS}?client=${i}' '${ELSEWHERE}?client=${i}' 2>/dev/null
      (unset ${variable} CURL_CA_BUNDLE SSL_CERT_FILE; ${command()} '${PULLS}?untrusted' 2>&1 | grep -v ^Picked)
      echo -- next`,
    ).join("\n");
    const ran = await machine.sh(script, {
      agent: "coder",
      env: { PYTHONPATH: `${machine.dir}/python` },
    });
    lines = ran.stdout.split("-- next\n").map((part) =>
      part
        .trim()
        .split("\n")
        .filter((line) => line !== ""),
    );
    asked = [...received()];
  });

  test.each(CLIENTS.map(([name, , , protocol, read], i) => [name, protocol, read, i] as const))(
    "%s",
    (_name, protocol, read, i) => {
      const [allowed, denied, untrusted] = (lines[i] ?? []).map(read);
      expect(allowed).toEqual({
        status: 200,
        protocol,
        body: '[{"number":1,"title":"a pull request"}]',
      });
      expect(denied).toMatchObject({ status: 403, protocol });
      expect(JSON.parse(denied?.body ?? "")).toMatchObject({
        source: "svc",
        code: "out_of_scope",
        message: "other/hello is outside the scope of github.",
      });
      expect(untrusted?.error).toMatch(/certificate|certification path|PKIX/i);
      expect(asked.filter(({ url }) => url.endsWith(`client=${i}`)).map(({ url }) => url)).toEqual([
        `/repos/octo/hello/pulls?client=${i}`,
      ]);
      expectOurCredential(asked);
    },
  );

  test("and nobody arrived without", () => {
    expect(asked.filter(({ url }) => url.includes("untrusted"))).toEqual([]);
  });
});

describe("gh", () => {
  const env = { GH_TOKEN: "gho_agents-own", GH_CONFIG_DIR: "/tmp/gh", GH_NO_UPDATE_NOTIFIER: "1" };

  test("asks with a token of its own, which does not arrive", async () => {
    const ran = await machine.run(["gh", "api", "repos/octo/hello/pulls"], { agent: "coder", env });
    expect(ran).toEqual({ code: 0, stdout: '[{"number":1,"title":"a pull request"}]', stderr: "" });
    expectOurCredential();
  });

  test("shows why it is denied", async () => {
    const ran = await machine.run(
      ["gh", "api", "--method", "PUT", "repos/octo/hello/pulls/1/merge"],
      { agent: "coder", env },
    );
    expect(ran.code).toBe(1);
    expect(ran.stderr).toMatch(/^gh: .*pulls:write.* \(HTTP 403\)\n$/);
    expect(received()).toEqual([]);
  });
});

describe("HTTP without TLS", () => {
  const path = "api.github.com/repos/octo/hello/pulls";
  const program =
    "import requests, sys; answer = requests.get(sys.argv[1]); " +
    "print(answer.status_code, answer.text)";
  const python = `${PYTHON} -c '${program}'`;

  test.each([
    ["curl, by the port", `curl -sS -w '%{http_code}' http://${path.replace("/", ":8081/")}`],
    [
      "curl, by a proxy",
      `http_proxy=http://127.0.0.1:8081 curl -sS -w '%{http_code}' http://${path}`,
    ],
    ["requests, by the port", `${python} http://${path.replace("/", ":8081/")}`],
    ["requests, by a proxy", `http_proxy=http://127.0.0.1:8081 ${python} http://${path}`],
  ])("%s: is judged, and forwarded over TLS", async (_name, script) => {
    const env = { PYTHONPATH: `${machine.dir}/python` };
    const ran = await machine.sh(`${script}; ${script.replaceAll("octo", "other")}`, {
      agent: "coder",
      env,
    });
    expect(ran.stdout).toContain('[{"number":1,"title":"a pull request"}]');
    expect(ran.stdout).toContain("other/hello is outside the scope of github.");
    expect(received().map(({ host, url }) => `${host} ${url}`)).toEqual([
      "api.github.com /repos/octo/hello/pulls",
    ]);
    expectOurCredential();
  });

  test("does not reach what is not bound", async () => {
    const ran = await machine.sh(
      "http_proxy=http://127.0.0.1:8081 curl -sS http://example.com/; " +
        "https_proxy=http://127.0.0.1:8081 curl -sS https://example.com/",
      { agent: "coder" },
    );
    expect(ran.stdout).toContain("The host example.com is not bound to a Provider");
    expect(ran.stderr).toContain("CONNECT tunnel failed, response 404");
    expect(received()).toEqual([]);
  });
});

test("Octokit is served, and shows why it is not", async () => {
  const { stdout } = await machine.run(
    [machine.node, machine.client("octokit.mjs"), "octo/hello"],
    { agent: "coder" },
  );
  expect(stdout.trim().split("\n").map(readJson)).toEqual([
    { status: 200, data: [{ number: 1, title: "a pull request" }] },
    { status: 403, message: expect.stringContaining("pulls:write") as unknown },
    { status: 200, data: expect.anything() as unknown },
  ]);
  expect(received().map(({ method, url }) => `${method} ${url}`)).toEqual([
    "GET /repos/octo/hello/pulls?state=open",
    "GET /user",
  ]);
  expectOurCredential();
});

describe("git", () => {
  const url = "https://github.com/octo/hello.git";
  const IDENTITY =
    "git config --global user.email agent@example.com; git config --global user.name agent;";

  test.each([
    ["HTTP/2", "2.0"],
    ["HTTP/1.1", "1.1"],
  ])("clones over %s, with a gzip'ed request", async (version) => {
    const ran = await machine.sh(
      `git -c http.version=${version} clone --quiet ${url} /tmp/clone && git -C /tmp/clone ` +
        "branch --remotes | wc -l",
      { agent: "reader" },
    );
    expect(ran).toEqual({ code: 0, stdout: `${BRANCHES.length + 1}\n`, stderr: "" });
    expect(received().map(({ method, url: asked }) => `${method} ${asked}`)).toEqual([
      "GET /octo/hello.git/info/refs?service=git-upload-pack",
      "POST /octo/hello.git/git-upload-pack",
      "POST /octo/hello.git/git-upload-pack",
    ]);
    expect(received().at(-1)?.headers["content-encoding"]).toBe("gzip");
    expectOurCredential();
  });

  test("pushes what is small, and what is sent in chunks", async () => {
    const script = `set -e; ${IDENTITY}
      git clone --quiet ${url} /tmp/clone && cd /tmp/clone
      echo small > small && git add . && git commit --quiet -m small && git push --quiet origin HEAD:refs/heads/small
      head -c 5000000 /dev/urandom > large && git add . && git commit --quiet -m large
      git push --quiet origin HEAD:refs/heads/large
      git -c http.version=HTTP/1.1 push --quiet origin HEAD:refs/heads/large-1.1 HEAD~1:refs/heads/other
      git rev-parse HEAD~1 HEAD`;
    const ran = await machine.sh(script, { agent: "coder" });
    expect(ran).toMatchObject({ code: 0, stderr: "" });
    const [small, large] = ran.stdout.trim().split("\n");
    expect(
      git.git("octo/hello", ["rev-parse", "small", "large", "large-1.1", "other"]).split("\n"),
    ).toEqual([small, large, large, small]);
    git.git("octo/hello", ["fsck", "--strict"]);
    const sizes = received()
      .filter(({ url: asked }) => asked.endsWith("/git-receive-pack"))
      .map(({ body }) => body.length);
    expect(Math.max(...sizes)).toBeGreaterThan(5_000_000);
    expectOurCredential();
  });

  test("pushes a large pack when it is new to the other side over HTTP/1.1", async () => {
    const script = `set -e; ${IDENTITY}
      git init --quiet /tmp/new && cd /tmp/new
      head -c 3000000 /dev/urandom > large && git add . && git commit --quiet -m large
      git -c http.version=HTTP/1.1 push --quiet ${url} HEAD:refs/heads/unrelated && git rev-parse HEAD`;
    const ran = await machine.sh(script, { agent: "coder" });
    expect(ran).toMatchObject({ code: 0, stderr: "" });
    expect(git.git("octo/hello", ["rev-parse", "unrelated"])).toBe(ran.stdout.trim());
    expectOurCredential();
  });

  test("asks with Expect: 100-continue", async () => {
    const head = git.git("octo/hello", ["rev-parse", "main"]);
    const script = `printf '0032want ${head}\\n00000009done\\n' > /tmp/body
      curl -sS -v --http1.1 -H 'expect: 100-continue' -H 'content-type: application/x-git-upload-pack-request' --data-binary @/tmp/body ${url}/git-upload-pack --output /tmp/pack
      head -c 8 /tmp/pack; tail -c +9 /tmp/pack | head -c 4`;
    const ran = await machine.sh(script, { agent: "reader" });
    expect(ran.stderr).toContain("< HTTP/1.1 100 Continue");
    expect(ran.stdout).toBe("0008NAK\nPACK");
    expectOurCredential();
  });

  test.each<[string, string, string, string]>([
    [
      "a clone out of scope",
      "coder",
      "git clone https://github.com/other/hello.git /tmp/x",
      "other/hello is outside the scope of github.",
    ],
    [
      "a push where reading is all that is allowed",
      "reader",
      `git clone --quiet ${url} /tmp/x && git -C /tmp/x push origin HEAD:refs/heads/mine`,
      "contents:write",
    ],
  ])("shows why it is denied: %s", async (_name, who, script, reason) => {
    const ran = await machine.sh(script, { agent: who, env: { GIT_TERMINAL_PROMPT: "0" } });
    expect(ran.code).toBe(128);
    expect(ran.stderr).toContain("The requested URL returned error: 403");
    expect(ran.stderr).toMatch(new RegExp(`^remote: .*${reason}`, "m"));
    expect(received().filter(({ url: asked }) => /other|receive-pack/.test(asked))).toEqual([]);
  });

  test("sends a credential of its own, which does not arrive", async () => {
    const ran = await machine.sh(
      "git ls-remote --heads https://agents-own:agents-own@github.com/octo/hello.git main",
      { agent: "reader" },
    );
    expect(ran).toMatchObject({ code: 0, stderr: "" });
    expectOurCredential();
  });
});

test("the agent holds no credential: not in its environment, not in a file, not in /proc", async () => {
  const script = `curl -sS ${PULLS} -o /dev/null -D -
    env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline /proc/net/unix /proc/self/mountinfo
    find / -xdev -path /proc -prune -o -path '*/node_modules/*' -prune -o -type f -newer /run/svc/trust/ca.crt -size -1000k -exec cat {} + 2>/dev/null
    find /run /tmp /var/tmp /dev/shm /etc /home /srv -type f -size -1000k -exec cat {} + 2>/dev/null`;
  const ran = await machine.sh(script, { agent: "coder" });
  expect(ran.stdout).toContain("BEGIN CERTIFICATE");
  expect(ran.stdout).toContain("GIT_SSL_CAINFO=/run/svc/trust/ca-bundle.crt");
  expect(received()).toHaveLength(1);
  for (const form of [
    TOKEN,
    TOKEN.slice(4, 30),
    Buffer.from(TOKEN).toString("base64"),
    BASIC.slice(6),
    encodeURIComponent(TOKEN),
  ])
    expect(ran.stdout + ran.stderr).not.toContain(form);
});

test("an agent that would run as root is not run", async () => {
  const { code, stdout, stderr } = await machine.sh("echo ran", { agent: "root" });
  expect([code, stdout]).toEqual([125, ""]);
  expect(stderr).toContain(
    "Agent root in namespace default is not in use: RunsAsRoot: spec.runAsUser must not be 0",
  );
});

test("what was called and what was denied is on record, without a credential", async () => {
  const [allowed, denied] = ["/repos/octo/on-record/pulls", "/repos/other/on-record/pulls"];
  await machine.run(
    ["curl", "-sS", `https://api.github.com${allowed}`, `https://api.github.com${denied}`],
    { agent: "coder" },
  );
  const dir = path.join(machine.stack.stateDir, "audit");
  const text = readdirSync(dir, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".jsonl"))
    .map((name) => readFileSync(path.join(dir, name), "utf8"))
    .join("");
  const records = text
    .split("\n")
    .filter((line) => line.includes('"SERVICE_CALL"'))
    .map((line) => JSON.parse(line) as { readonly fields: Readonly<Record<string, unknown>> });
  const fields = records.map((record) => record.fields);
  const asked = fields.filter((each) => each["path"] === allowed || each["path"] === denied);
  expect(asked).toMatchObject([
    {
      workload: "default/coder",
      binding: "github",
      action: "pulls:read",
      allowed: true,
      phase: "request",
      path: allowed,
    },
    {
      workload: "default/coder",
      binding: "github",
      action: "pulls:read",
      allowed: false,
      path: denied,
    },
  ]);
  expect(
    fields.filter((each) => each["call"] === asked[0]?.["call"] && each["phase"] === "response"),
  ).toMatchObject([{ status: 200 }]);
  expect(text).not.toContain(TOKEN);
  expect(text).not.toContain(BASIC.slice(6));
});
