/**
 * Git's own HTTP backend (`git http-backend`, CGI) behind Basic authentication, as github.com
 * serves repositories.
 */
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import type http2 from "node:http2";
import os from "node:os";
import path from "node:path";
import { text } from "node:stream/consumers";
import type { Received } from "./services.ts";

/** Nothing of the user that runs the tests: neither name, nor hooks, nor credential helpers. */
const GIT_ENV = {
  PATH: process.env["PATH"],
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: "/dev/null",
  ...Object.fromEntries(
    ["AUTHOR", "COMMITTER"].flatMap((who) => [
      [`GIT_${who}_NAME`, "tester"],
      [`GIT_${who}_EMAIL`, "tester@example.com"],
    ]),
  ),
};

export class GitBackend {
  readonly #root = mkdtempSync(path.join(os.tmpdir(), "svc-git-"));
  readonly #token: string;

  /** @param token the password of `x-access-token`, who may read and push */
  constructor(token: string) {
    this.#token = token;
  }

  /** A bare repository with a commit on each of these branches. */
  create(name: string, branches: readonly string[]): void {
    const dir = path.join(this.#root, `${name}.git`);
    mkdirSync(dir, { recursive: true });
    this.git(name, ["init", "--quiet", "--bare", "--initial-branch", branches[0] ?? "main"]);
    this.git(name, ["config", "http.receivepack", "true"]);
    const tree = this.git(name, ["mktree"], "");
    for (const branch of branches) {
      const commit = this.git(name, ["commit-tree", tree, "-m", branch]);
      this.git(name, ["update-ref", `refs/heads/${branch}`, commit]);
    }
  }

  /** Git in the repository itself. */
  git(name: string, args: readonly string[], input?: string): string {
    return execFileSync("git", ["-C", path.join(this.#root, `${name}.git`), ...args], {
      encoding: "utf8",
      env: GIT_ENV,
      input,
    }).trim();
  }

  async serve(request: Received, response: http2.Http2ServerResponse): Promise<void> {
    const expected = `Basic ${Buffer.from(`x-access-token:${this.#token}`).toString("base64")}`;
    if (request.headers.authorization !== expected) {
      response.writeHead(401, {
        "www-authenticate": 'Basic realm="GitHub"',
        "content-type": "text/plain",
      });
      response.end("who is it?\n");
      return;
    }
    const { status, headers, body } = await this.#cgi(request);
    response.writeHead(status, headers);
    response.end(body);
  }

  async #cgi({
    method,
    url,
    headers,
    body,
  }: Received): Promise<{ status: number; headers: Record<string, string>; body: Buffer }> {
    const mark = url.indexOf("?");
    const header = (name: string): string => String(headers[name] ?? "");
    const child = spawn("git", ["http-backend"], {
      stdio: ["pipe", "pipe", "pipe"],
      env: {
        ...GIT_ENV,
        GIT_PROJECT_ROOT: this.#root,
        GIT_HTTP_EXPORT_ALL: "1",
        GIT_PROTOCOL: header("git-protocol"),
        REMOTE_USER: "x-access-token",
        REQUEST_METHOD: method,
        PATH_INFO: decodeURIComponent(mark < 0 ? url : url.slice(0, mark)),
        QUERY_STRING: mark < 0 ? "" : url.slice(mark + 1),
        CONTENT_TYPE: header("content-type"),
        CONTENT_LENGTH: String(body.length),
        HTTP_CONTENT_ENCODING: header("content-encoding"),
      },
    });
    child.stdin.on("error", () => {});
    child.stdin.end(body);
    const said = text(child.stderr);
    const parts: Buffer[] = [];
    for await (const part of child.stdout as AsyncIterable<Buffer>) parts.push(part);
    const answer = Buffer.concat(parts);
    const end = answer.indexOf("\r\n\r\n");
    if (end < 0) throw new Error(`git http-backend: ${await said}`);
    const fields = answer
      .subarray(0, end)
      .toString("latin1")
      .split("\r\n")
      .map((line) => line.split(/:\s*/, 2) as [string, string]);
    const { status = "200", ...others } = Object.fromEntries(
      fields.map(([name, value]) => [name.toLowerCase(), value]),
    );
    return { status: Number.parseInt(status, 10), headers: others, body: answer.subarray(end + 4) };
  }

  remove(): void {
    rmSync(this.#root, { recursive: true, force: true });
  }
}
