/**
 * Resolves requests to GitHub's REST API to an operation, by GitHub's own description of its
 * routes.
 */
import generated from "../../gen/github-routes.json" with { type: "json" };
import type { ActionResolution, ServiceRequest } from "../contract.ts";
import { splitPath } from "../url-path.ts";
import { actionsOf, handsOutCredentials } from "./rest-actions.ts";
import { resourcesOf } from "./rest-resources.ts";
import { RouteTrie } from "../route-trie.ts";
import { unresolved } from "./unresolved.ts";

/**
 * Returns whether a route has the same paths as another, complete one: `compare/{base}...{head}` is
 * `compare/{basehead}`.
 */
export function isTwin(line: string): boolean {
  return line.includes("}...{");
}

/**
 * GitHub's pages of a list link to these, by number. They name no repository, so no scope allows
 * them.
 */
const BY_NUMBER = [
  ["/repositories/{id:int}", "/repos/{owner}/{repo}"],
  ["/organizations/{id:int}", "/orgs/{org}"],
] as const;

let built: RouteTrie | undefined;

/** Built with the first request, because it takes memory. */
function routes(): RouteTrie {
  if (built !== undefined) return built;
  built = new RouteTrie();
  for (const line of generated.routes) if (!isTwin(line)) built.add(line);
  for (const [typed, template] of BY_NUMBER) built.alias(typed, template);
  return built;
}

/** @param path path of the API, without the prefix of GitHub Enterprise Server */
export function resolveRest(request: ServiceRequest, path: string): ActionResolution {
  const split = splitPath(path);
  if (split.kind === "refused") return unresolved(split.reason, split.hint);
  const match = routes().find(request.method, split.segments, split.trailingSlash);
  if (match === undefined) {
    return unresolved(
      `${request.method} of this path is not a known operation of GitHub's REST API`,
      split.trailingSlash
        ? "Remove the trailing slash"
        : "See https://docs.github.com/rest for the paths, without `.git`",
    );
  }
  if (handsOutCredentials(match.route)) {
    return unresolved(
      "This operation hands out or revokes credentials, which agents do not hold",
      "Call the API itself: the proxy adds the credential",
    );
  }
  // Paths by number (BY_NUMBER) have fewer parameters than the template, and no `owner`.
  const byNumber =
    ["repositories", "organizations"].includes(split.segments[0]?.text ?? "") &&
    /^\d+$/.test(split.segments[1]?.text ?? "");
  const resources = byNumber
    ? [
        {
          kind: "unscopable",
          reason: "A number may be of any repository: use /repos/{owner}/{repo}",
        } as const,
      ]
    : resourcesOf(match, request);
  if (resources === undefined)
    return unresolved(
      "The path names no repository as GitHub names them",
      "It is /repos/owner/name, without `.git`",
    );
  return {
    kind: "resolved",
    actions: actionsOf(match.route).map((action) => ({ ...action, resources })),
  };
}
