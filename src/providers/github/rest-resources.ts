/**
 * The resources of a REST operation in terms of a repository scope: the repository that its path
 * names, and its reach beyond it (rest-reach.ts, rest-body.ts). A number names no repository,
 * because GitHub looks it up among all repositories that the token can access.
 */
import type { ServiceResource, ServiceRequest } from "../contract.ts";
import { repositoryResource, unscopable } from "./repository.ts";
import type { RouteMatch } from "../route-trie.ts";
import { bodyResources } from "./rest-body.ts";
import { DESCRIBES_LINKED, REACHES_FURTHER, WITHIN } from "./rest-reach.ts";
import { searchScope } from "./search-scope.ts";

/** Prefixes after which only the repository is named. */
const WITHIN_PREFIXES = [
  "/repos/{owner}/{repo}",
  "/repos/{template_owner}/{template_repo}",
  "/networks/{owner}/{repo}",
  "/agents/repos/{owner}/{repo}",
  "/user/starred/{owner}/{repo}",
];

/** Public, about no repository, or only about the caller. */
const ABOUT_NO_REPOSITORY = new Set([
  "meta",
  "rate-limit",
  "emojis",
  "licenses",
  "gitignore",
  "codes-of-conduct",
  "markdown",
]);
const OPERATIONS_ABOUT_NO_REPOSITORY = new Set([
  "users/get-authenticated",
  "users/get-by-id",
  "users/get-by-username",
  "apps/get-by-slug",
  "security-advisories/list-global-advisories",
  "security-advisories/get-global-advisory",
]);

/**
 * Parameters of a path and of a query that name a ref or a commit. A ref's name cannot contain a
 * colon.
 */
const REF_PARAMETERS = [
  "basehead",
  "branch",
  "commit_sha",
  "file_sha",
  "ref",
  "sha",
  "tag",
  "tag_sha",
  "tree_sha",
];

const SEARCHES = new Set(["search/issues-and-pull-requests", "search/code", "search/commits"]);

export const TABLES = {
  ABOUT_NO_REPOSITORY,
  OPERATIONS_ABOUT_NO_REPOSITORY,
  SEARCHES,
};

/** @returns undefined if the path has no valid repository name */
export function resourcesOf(
  match: RouteMatch,
  request: ServiceRequest,
): readonly ServiceResource[] | undefined {
  const { route } = match;
  const named = namedRepository(match);
  if (named === "invalid") return undefined;
  if (SEARCHES.has(route.operation)) return searchedResources(request.query);
  if (
    named === undefined &&
    (ABOUT_NO_REPOSITORY.has(route.category) || OPERATIONS_ABOUT_NO_REPOSITORY.has(route.operation))
  )
    return [{ kind: "none" }];
  if (named === undefined)
    return [
      unscopable(
        `${route.template} is about more than one repository, or about none that the path names`,
      ),
    ];
  return [named.resource, ...linkedResources(match, request, named)];
}

/** Returns the resources of the operation besides the repository of its path. */
function linkedResources(
  { route, parameters }: RouteMatch,
  request: ServiceRequest,
  repository: NamedRepository,
): readonly ServiceResource[] {
  if (!WITHIN_PREFIXES.some((prefix) => route.template.startsWith(prefix)))
    return [unscopable("This is about a team as well as the repository")];
  const further = REACHES_FURTHER[route.operation];
  if (further !== undefined) return [unscopable(further)];
  const byBody = bodyResources(route.operation, request, repository);
  if (byBody !== undefined) return byBody;
  if (!WITHIN.has(route.operation) && !DESCRIBES_LINKED.has(route.operation))
    return [unscopable(`How far ${route.operation} reaches is not known here`)];
  const query = new URLSearchParams(request.query);
  const refs = REF_PARAMETERS.flatMap((name) => [
    ...(parameters.get(name) ?? []).map(({ text }) => text),
    ...query.getAll(name),
  ]);
  return refs.some((ref) => ref.includes(":"))
    ? [unscopable("`user:branch` is a branch of another repository")]
    : [];
}

interface NamedRepository {
  readonly owner: string;
  readonly name: string;
  readonly resource: ServiceResource;
}

function namedRepository({ parameters }: RouteMatch): NamedRepository | "invalid" | undefined {
  const owners = parameters.get("owner") ?? parameters.get("template_owner");
  const names = parameters.get("repo") ?? parameters.get("template_repo");
  if (owners === undefined || names === undefined) return undefined;
  const [owner, name] = [owners[0]?.text ?? "", names[0]?.text ?? ""];
  const resource = repositoryResource(owner, name);
  return resource === undefined ? "invalid" : { owner, name, resource };
}

function searchedResources(query: string): readonly ServiceResource[] {
  const found = new URLSearchParams(query).getAll("q");
  const repositories = found.length === 1 ? searchScope(found[0] ?? "") : undefined;
  return (
    repositories ?? [
      unscopable(
        "Only a search whose every result is of a `repo:owner/name` in it can be held to a scope",
      ),
    ]
  );
}
