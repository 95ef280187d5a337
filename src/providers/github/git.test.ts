import { expect, test } from "vitest";
import { request } from "../testing.ts";
import { resolveFiles, resolveGit } from "./git.ts";
import type { ActionResolution } from "../contract.ts";

const brief = (resolution: ActionResolution): string =>
  resolution.kind === "unresolved"
    ? "unresolved"
    : resolution.actions
        .map(
          ({ action, resources }) =>
            `${action} ` +
            resources.map((each) => (each.kind === "scoped" ? each.value : each.kind)).join("+"),
        )
        .join(", ");

function told(line: string, body?: string, headers: Readonly<Record<string, string>> = {}): string {
  const [method = "", target = ""] = line.split(" ");
  const made = request(
    `${method} https://github.com${target}`,
    body === undefined ? { headers } : { headers, body },
  );
  const { resolution, authenticated } = resolveGit(made);
  return `${brief(resolution)}${authenticated ? "" : " (no token)"}`;
}

test.each([
  ["GET /o/r.git/info/refs?service=git-upload-pack", "contents:read o/r"],
  ["GET /o/r/info/refs?service=git-upload-pack", "contents:read o/r"],
  ["GET /o/r.git/info/refs?service=git-receive-pack", "contents:write o/r"],
  ["POST /o/r.git/git-upload-pack", "contents:read o/r"],
  ["POST /o/r/git-upload-pack", "contents:read o/r"],
  ["POST /o/r.git/git-receive-pack", "contents:write o/r"],
  ["POST /O/R.x.git/git-receive-pack", "contents:write O/R.x"],
  ["GET /o/r.wiki.git/info/refs?service=git-upload-pack", "contents:read o/r"],
  ["POST /o/r.wiki.git/git-receive-pack", "contents:write o/r"],
  ["GET /o/r.git/info/lfs/locks", "contents:read o/r"],
  ["GET /o/r.git/info/lfs/locks?path=a&limit=5", "contents:read o/r"],
  ["POST /o/r.git/info/lfs/locks", "contents:write o/r"],
  ["POST /o/r.git/info/lfs/locks/verify", "contents:write o/r"],
  ["POST /o/r.git/info/lfs/locks/12/unlock", "contents:write o/r"],
  ["GET /o/r/archive/refs/heads/main.tar.gz", "contents:read o/r (no token)"],
  ["HEAD /o/r/releases/download/v1/a.zip", "contents:read o/r (no token)"],
  ["GET /o/r/releases/latest/download/a.zip", "contents:read o/r (no token)"],
  ["GET /o/r/raw/main/README.md", "contents:read o/r (no token)"],
])("%s is %s", (line, expected) => {
  expect(told(line)).toBe(expected);
});

test.each([
  // The service: exactly once, unencoded, and without other parameters.
  "GET /o/r.git/info/refs",
  "GET /o/r.git/info/refs?service=",
  "GET /o/r.git/info/refs?service=git-upload-pack&service=git-receive-pack",
  "GET /o/r.git/info/refs?service=git-receive-pack&service=git-upload-pack",
  "GET /o/r.git/info/refs?service=git-upload-pack&x=1",
  "GET /o/r.git/info/refs?x=1&service=git-upload-pack",
  "GET /o/r.git/info/refs?service=git%2Dreceive%2Dpack",
  "GET /o/r.git/info/refs?servic%65=git-upload-pack",
  "GET /o/r.git/info/refs?SERVICE=git-upload-pack",
  "GET /o/r.git/info/refs?service=git-upload-archive",
  "GET /o/r.git/info/refs?service=GIT-UPLOAD-PACK",
  "GET /o/r.git/info/refs?service=git-upload-pack;service=git-receive-pack",
  "POST /o/r.git/info/refs?service=git-upload-pack",
  "HEAD /o/r.git/info/refs?service=git-upload-pack",
  // Methods and queries that git does not send.
  "GET /o/r.git/git-upload-pack",
  "PUT /o/r.git/git-receive-pack",
  "POST /o/r.git/git-upload-pack?service=git-receive-pack",
  "POST /o/r.git/git-upload-archive",
  // The dumb protocol.
  "GET /o/r.git/HEAD",
  "GET /o/r.git/objects/info/packs",
  "GET /o/r.git/objects/12/34567890",
  "GET /o/r.git/config",
  // Ambiguous paths.
  "POST /o/r.git/git-upload-pack/../git-receive-pack",
  "POST /o/r.git/git-upload-pack/%2e%2e/git-receive-pack",
  "POST /o/r.git/git-upload-pack%2f..%2fgit-receive-pack",
  "POST /o/r.git/git%2dreceive-pack",
  "POST /o/../x/y.git/git-upload-pack",
  "POST //o/r.git/git-upload-pack",
  "POST /o//r.git/git-upload-pack",
  "POST /o/r.git//git-upload-pack",
  "POST /o/r.git/git-upload-pack/",
  "POST /o/r.git;x/git-upload-pack",
  "POST /o%2fr.git/git-upload-pack",
  "GET /o/r.git/info%2Frefs?service=git-upload-pack",
  "POST /o/r.git/info/lfs/objects%2fbatch",
  "GET /o/r/releases%2Fdownload/v1/a.zip",
  "GET /o/r/releases/download/v1%2Fa.zip",
  "POST /o/x%2fr.git/git-upload-pack",
  "POST /o/r.git.git/git-upload-pack",
  "POST /o/.git/git-upload-pack",
  "POST /o/..git/git-upload-pack",
  "POST /o/.wiki.git/git-upload-pack",
  "POST /o/r/x/git-upload-pack",
  // All other web pages.
  "GET /",
  "GET /o/r",
  "GET /login",
  "POST /login/oauth/access_token",
  "POST /login/device/code",
  "GET /o/r/settings/keys",
  "POST /o/r/releases/download/v1/a.zip",
  "GET /o/r/archive",
])("%s is not understood", (line) => {
  expect(told(line)).toBe("unresolved (no token)");
});

const BATCH = "POST /o/r.git/info/lfs/objects/batch";

test("an LFS batch is what its operation says; what cannot be read is an upload", () => {
  expect(told(BATCH, '{"operation":"download","objects":[]}')).toBe("contents:read o/r");
  expect(told(BATCH, '{"operation":"upload"}')).toBe("contents:write o/r");
  expect(told(BATCH)).toBe("contents:write o/r");
  expect(told(BATCH, '{"operation":"download"}', { "content-encoding": "gzip" })).toBe(
    "contents:write o/r",
  );
  for (const body of [
    "",
    "x",
    "[]",
    "{}",
    '"download"',
    '{"Operation":"download"}',
    '{"operation":["download"]}',
    '{"operation":"download","operation":"upload"}',
    '{"operation":"upload","operation":"download"}',
  ]) {
    expect([body, told(BATCH, body)]).toEqual([body, "contents:write o/r"]);
  }
});

test("a compressed request of git is none of our business", () => {
  expect(told("POST /o/r.git/git-upload-pack", undefined, { "content-encoding": "gzip" })).toBe(
    "contents:read o/r",
  );
});

test.each([
  ["GET /o/r/main/src/a.ts", "contents:read o/r"],
  ["GET /o/r/refs/heads/main/a%20b", "contents:read o/r"],
  ["GET /o/r/tar.gz/refs/heads/main", "contents:read o/r"],
  ["HEAD /o/r/zip/v1", "contents:read o/r"],
  ["POST /o/r/main/a", "unresolved"],
  ["GET /o/r", "unresolved"],
  ["GET /o/r/../../x/y/main/a", "unresolved"],
  ["GET /o/r/%2e%2e/%2e%2e/x/y/main/a", "unresolved"],
  ["GET /o/r/main/..%2f..%2f..%2fx", "unresolved"],
])("files: %s is %s", (line, expected) => {
  const [method = "", target = ""] = line.split(" ");
  expect(brief(resolveFiles(request(`${method} https://raw.githubusercontent.com${target}`)))).toBe(
    expected,
  );
});
