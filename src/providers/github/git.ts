/**
 * Git over HTTPS, LFS and downloads, as github.com serves them. Only the smart protocol is
 * supported: the dumb one would read files of `.git` by paths without a meaning for policies.
 * https://git-scm.com/docs/http-protocol
 */
import type { ActionResolution, ServiceResource, ServiceRequest } from "../contract.ts";
import { type LfsOperation, readLfsOperation } from "./lfs.ts";
import { type Segment, splitPath } from "../url-path.ts";
import { repositoryResource } from "./repository.ts";
import { unresolved } from "./unresolved.ts";

export interface GitRequest {
  readonly resolution: ActionResolution;
  /** False if github.com does not accept the token: pages that redirect to a download. */
  readonly authenticated: boolean;
}

const READ = "contents:read";
const WRITE = "contents:write";
/** Web addresses that answer with a redirect to a file, after `/owner/repo`. */
const DOWNLOADS = [
  ["archive"],
  ["raw"],
  ["releases", "download"],
  ["releases", "latest", "download"],
  ["zipball"],
  ["tarball"],
];

export function resolveGit(request: ServiceRequest): GitRequest {
  const split = splitPath(request.path);
  if (split.kind === "refused") return refuse(split.reason, split.hint);
  const [owner, name, ...rest] = split.segments;
  if (split.trailingSlash || owner === undefined || name === undefined || rest.length === 0)
    return notGit();
  const repository = gitRepository(owner, name);
  if (repository === undefined)
    return refuse("The path names no repository as GitHub names them", "It is /owner/name.git/...");
  const resolved = (action: string, authenticated = true): GitRequest => ({
    authenticated,
    resolution: { kind: "resolved", actions: [{ action, resources: [repository] }] },
  });
  if (rest.some(({ slashed }) => slashed)) return notGit();
  const line = `${request.method} ${rest.map(({ text }) => text).join("/")}`;
  if (line === "GET info/refs") {
    if (request.query === "service=git-upload-pack") return resolved(READ);
    if (request.query === "service=git-receive-pack") return resolved(WRITE);
    return refuse(
      "info/refs wants exactly one `service`, git-upload-pack or git-receive-pack",
      "Use git 1.6.6 or later: the dumb protocol is not served",
    );
  }
  const reads = request.method === "GET" || request.method === "HEAD";
  if (
    reads &&
    DOWNLOADS.some(
      (words) => words.length < rest.length && words.every((word, at) => rest[at]?.text === word),
    )
  ) {
    return resolved(READ, false);
  }
  if (request.query !== "" && !line.startsWith("GET info/lfs/locks")) return notGit();
  if (line === "POST git-upload-pack") return resolved(READ);
  if (line === "POST git-receive-pack") return resolved(WRITE);
  const lfs = lfsOperation(line, request);
  if (lfs === undefined) return notGit();
  return resolved(lfs === "download" ? READ : WRITE);
}

/** `name`, `name.git`, and the repository's wiki, which has no name of its own in a scope. */
function gitRepository(owner: Segment, name: Segment): ServiceResource | undefined {
  return repositoryResource(owner.text, name.text.replace(/\.git$/, "").replace(/\.wiki$/, ""));
}

/** https://github.com/git-lfs/git-lfs/tree/main/docs/api */
function lfsOperation(line: string, request: ServiceRequest): LfsOperation | undefined {
  if (line === "POST info/lfs/objects/batch") return readLfsOperation(request);
  if (line === "GET info/lfs/locks") return "download";
  if (line === "POST info/lfs/locks" || line === "POST info/lfs/locks/verify") return "upload";
  return /^POST info\/lfs\/locks\/[A-Za-z0-9_-]+\/unlock$/.test(line) ? "upload" : undefined;
}

function notGit(): GitRequest {
  return refuse(
    "On this host only git over HTTPS, LFS and downloads are served",
    "Use https://api.github.com for everything else",
  );
}

function refuse(reason: string, hint: string): GitRequest {
  return { resolution: unresolved(reason, hint), authenticated: false };
}

/** `/owner/repo/...` on codeload.github.com and raw.githubusercontent.com. */
export function resolveFiles(request: ServiceRequest): ActionResolution {
  const split = splitPath(request.path);
  if (split.kind === "refused") return unresolved(split.reason, split.hint);
  const [owner, name, ref] = split.segments;
  const repository =
    owner === undefined || name === undefined || ref === undefined
      ? undefined
      : repositoryResource(owner.text, name.text);
  if (repository === undefined || (request.method !== "GET" && request.method !== "HEAD")) {
    return unresolved("This host only serves files of a repository, by GET of /owner/name/...");
  }
  return { kind: "resolved", actions: [{ action: READ, resources: [repository] }] };
}
