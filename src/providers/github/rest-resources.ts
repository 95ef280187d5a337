/**
 * What a REST operation touches, in words of a repository scope. Only a repository that the path names is one: GitHub
 * looks numbers up among all repositories that the token sees, and a body that is not read may name any.
 */
import type { Resource } from "../contract.ts";
import { repositoryResource, unscopable } from "./repository.ts";
import type { RouteMatch } from "../route-trie.ts";
import { searchScope } from "./search-scope.ts";

/** Prefixes whose whole effect is within the repository named. */
const WITHIN = [
  "/repos/{owner}/{repo}",
  "/repos/{template_owner}/{template_repo}",
  "/networks/{owner}/{repo}",
  "/agents/repos/{owner}/{repo}",
  "/user/starred/{owner}/{repo}",
];

/** Public, about no repository, or about the caller alone. */
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

/** Whose body, or whose answer, reaches another repository than the path's. */
const REACHES_FURTHER: Readonly<Record<string, string>> = {
  "repos/create-fork": "A fork is a new repository in an account that the body names",
  "repos/create-using-template": "This makes a new repository in an account that the body names",
  "repos/transfer": "A transfer moves the repository to an account that the body names",
  "repos/update": "The body may rename the repository out of the scope",
  "issues/add-sub-issue": "The body names an issue by an id that may be of any repository",
  "issues/remove-sub-issue": "The body names an issue by an id that may be of any repository",
  "issues/reprioritize-sub-issue": "The body names issues by ids that may be of any repository",
  "issues/add-blocked-by-dependency":
    "The body names an issue by an id that may be of any repository",
  "code-scanning/create-variant-analysis": "The body names the repositories to analyse",
  "code-scanning/get-variant-analysis-repo-task": "The answer is about another repository",
  "security-advisories/create-fork": "This makes a new, private repository",
};

const SEARCHES = new Set(["search/issues-and-pull-requests", "search/code", "search/commits"]);

export const TABLES = {
  ABOUT_NO_REPOSITORY,
  OPERATIONS_ABOUT_NO_REPOSITORY,
  REACHES_FURTHER,
  SEARCHES,
};

/** @returns undefined where what stands in the repository's place is no repository's name */
export function resourcesOf(match: RouteMatch, query: string): readonly Resource[] | undefined {
  const { route, parameters } = match;
  const named = namedResource(match);
  if (named === "invalid") return undefined;
  if (SEARCHES.has(route.operation)) return searchedResources(query);
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
  const further = REACHES_FURTHER[route.operation] ?? reachesFork(parameters.get("basehead"));
  const outside = WITHIN.some((prefix) => route.template.startsWith(prefix))
    ? undefined
    : "This is about a team as well as the repository";
  return [named, ...[further, outside].filter((reason) => reason !== undefined).map(unscopable)];
}

function namedResource({ parameters }: RouteMatch): Resource | "invalid" | undefined {
  const owner = parameters.get("owner") ?? parameters.get("template_owner");
  const name = parameters.get("repo") ?? parameters.get("template_repo");
  if (owner === undefined || name === undefined) return undefined;
  return repositoryResource(owner[0]?.text ?? "", name[0]?.text ?? "") ?? "invalid";
}

/** `main...fork-owner:branch` and `owner:repo:branch` compare with another repository. */
function reachesFork(
  basehead: readonly { readonly text: string }[] | undefined,
): string | undefined {
  return basehead?.some(({ text }) => text.includes(":")) === true
    ? "`user:branch` compares with a branch of another repository"
    : undefined;
}

function searchedResources(query: string): readonly Resource[] {
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
